"""The report page in a real browser: it computes what `predict` gives, and everybody can use it."""

import importlib.util
import json
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harfe import HARFERegressor
from harfe.datasets import make_function
from harfe.report import write_report
from harfe.tables import TableModel

pytestmark = pytest.mark.slow

# As .ci/run: a machine that has installed a browser for these tests must not skip them.
REQUIRED = os.environ.get("HARFE_BROWSER_TESTS") == "required"

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic "
    "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
    "--force-prefers-reduced-motion"
)

# Packages that carry axe-core, the newest first.
AXE_PACKAGES = ("axe_playwright_python", "axe_core_python")


def missing(what):
    if REQUIRED:
        pytest.fail(f"HARFE_BROWSER_TESTS=required, but {what}")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing("there is no chromium with chromedriver on PATH")
    if importlib.util.find_spec("selenium") is None:
        missing("selenium is not installed")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """A page about waves, and the model."""
    data = make_function("friedman1", 200, random_state=0)
    X, y = data.X[:, :5], data.y
    model = HARFERegressor(300, 15, order=(1, 2), random_state=0, residual_cv=3)
    model.fit(X[:150], y[:150])
    path = tmp_path_factory.mktemp("waves") / "page.html"
    write_report(model, X[:150], y[:150], path, X_holdout=X[150:], y_holdout=y[150:])
    return path, model


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A page about a table with categories, odd names and features that are no waves."""
    rng = np.random.default_rng(0)
    table = {
        "size <m>": np.append(rng.uniform(0, 10, 99), 1e3),
        "rooms": rng.integers(1, 6, 100),
        "colour": rng.choice(["red", "green", "blue"], 100),
        "old": rng.choice(["no", "yes"], 100),
    }
    price = np.minimum(table["size <m>"], 10) ** 1.5 + 3 * (table["colour"] == "red")
    price = price + table["rooms"] - 2 * (table["old"] == "yes")
    estimator = HARFERegressor(200, 20, activation="tanh", order=(1, 2), random_state=0)
    model = TableModel.fit({**table, "price": price}, "price", estimator)
    path = tmp_path_factory.mktemp("table") / "page.html"
    write_report(model, table, price, path)
    return path, model


def open_page(browser, path, width=1280, colours="light"):
    media = {"features": [{"name": "prefers-color-scheme", "value": colours}]}
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(Path(path).as_uri())


def find(browser, selector):
    return browser.find_element("css selector", selector)


def settle(browser):
    """Wait until the page has drawn what was changed."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
    )


def shown(browser):
    settle(browser)
    return float(find(browser, "#prediction").get_attribute("data-value"))


def values(browser):
    """Numbers in the fields, by the name on their label."""
    return browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.input')].map((row) => "
        "[row.querySelector('label').textContent, row.querySelector('input[type=number],select')])"
        ".map(([name, e]) => [name, e.tagName === 'SELECT' ? e.selectedOptions[0].text : "
        "Number(e.value)]))"
    )


def label_of(browser, field):
    return browser.execute_script("return arguments[0].labels[0].textContent", field)


def test_page_loads_without_complaint_or_request(browser, waves):
    browser.get_log("performance"), browser.get_log("browser")
    open_page(browser, waves[0])
    shown(browser)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    # The browser's own first page asks for parts of the browser.
    urls = [p["request"]["url"] for p in sent if not p["documentURL"].startswith("chrome:")]
    assert waves[0].as_uri() in urls
    assert {url.split(":")[0] for url in urls} <= {"file", "data"}
    assert sum(url.startswith("file:") for url in urls) == 1


@pytest.mark.parametrize("link", ["log", "yeo-johnson"])
def test_the_panel_of_a_model_with_a_link_is_in_the_units_of_the_target(browser, tmp_path, link):
    data = make_function("friedman1", 150, random_state=0)
    X, y = data.X[:, :5], np.exp(data.y / 5)
    model = HARFERegressor(300, 15, random_state=0, residual_cv=3, link=link).fit(X, y)
    write_report(model, X, y, tmp_path / "page.html", target_name="price")
    open_page(browser, tmp_path / "page.html")
    value = shown(browser)
    set_to = values(browser)
    row = np.array([set_to[name] for name in model.expansion_.columns])
    assert value == pytest.approx(model.predict(row[None])[0], rel=1e-9)
    assert browser.get_log("browser") == []


def test_sliders_lead_to_the_prediction_of_the_model(browser, waves):
    from selenium.webdriver.common.keys import Keys

    path, model = waves
    open_page(browser, path)
    before = shown(browser)
    columns = model.expansion_.columns
    row = np.full(len(columns), 0.5)
    sliders = browser.find_elements("css selector", ".input input[type=range]")
    assert len(sliders) == len(values(browser)) > 3
    for k, slider in enumerate(sliders):
        if slider.is_displayed():
            slider.send_keys([Keys.END, Keys.ARROW_LEFT * 7, Keys.HOME, Keys.PAGE_UP][k % 4])
    after = shown(browser)
    for name, value in values(browser).items():
        row[columns.index(name)] = value
    assert after != pytest.approx(before, rel=1e-3)
    assert after == pytest.approx(model.predict(row[None])[0], rel=1e-9)
    # What each component adds is what the model says of this row.
    local = model.explain_local(row[None])
    wanted = dict(zip(local.component_names, local.components[0], strict=True))
    cells = browser.execute_script(
        "return [...document.querySelectorAll('.adds tbody tr')].map((row) => "
        "[row.cells[0].textContent, Number(row.cells[2].dataset.value)])"
    )
    assert len(cells) == len(wanted)
    for name, value in cells:
        assert value == pytest.approx(wanted[name], abs=1e-6)


def test_typed_numbers_and_what_lies_outside(browser, waves):
    path, model = waves
    open_page(browser, path)
    columns = model.expansion_.columns
    field = find(browser, ".input input[type=number]")
    name = label_of(browser, field)
    field.clear()
    field.send_keys("0.123456789")
    row = np.full(len(columns), 0.5)
    for other, value in values(browser).items():
        row[columns.index(other)] = value
    assert row[columns.index(name)] == 0.123456789
    assert shown(browser) == pytest.approx(model.predict(row[None])[0], rel=1e-9)
    assert not find(browser, ".beyond").is_displayed()
    field.clear()
    field.send_keys("7.5")
    row[columns.index(name)] = 7.5
    assert shown(browser) == pytest.approx(model.predict(row[None])[0], rel=1e-9)
    assert name in find(browser, ".beyond").text
    find(browser, ".reset").click()
    assert not find(browser, ".beyond").is_displayed()


def test_categories_are_choices(browser, table):
    path, model = table
    open_page(browser, path)
    for level in ("red", "blue", "green"):
        for old in ("no", "yes"):
            for select, text in (("colour", level), ("old", old)):
                browser.execute_script(
                    "const row = [...document.querySelectorAll('.input')].find((row) => "
                    "row.querySelector('label').textContent === arguments[0]);"
                    "const s = row.querySelector('select');"
                    "s.value = [...s.options].find((o) => o.text === arguments[1]).value;"
                    "s.dispatchEvent(new Event('change'));",
                    select,
                    text,
                )
            now = values(browser)
            assert (now["colour"], now["old"]) == (level, old)
            row = {name: [value] for name, value in now.items()}
            assert shown(browser) == pytest.approx(model.predict(row)[0], rel=1e-9)
    # Beyond the bounds of an input with outliers nothing changes.
    now["size <m>"] = 900.0
    field = find(browser, ".input input[type=number]")
    assert label_of(browser, field) == "size <m>"
    field.clear()
    field.send_keys("900")
    wanted = model.predict({name: [value] for name, value in now.items()})[0]
    assert shown(browser) == pytest.approx(wanted, rel=1e-9)


def test_hostile_names_stay_text(browser, tmp_path):
    names = ["<img src=x onerror='document.title=1'>", "{{ 7*7 }}", "</script><b>"]
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 3)), columns=names)
    y = X.to_numpy() @ [3.0, 2.0, 1.0] + X[names[0]] * X[names[1]]
    model = HARFERegressor(100, 8, order=(1, 2), random_state=0).fit(X, y)
    path = tmp_path / "page.html"
    target = "<script>document.title=2</script>"
    write_report(model, X, y, path, target_name=target)
    browser.get_log("browser")
    open_page(browser, path)
    assert browser.title == f"Model of {target}"
    assert find(browser, "h1").text == f"Model of {target}"
    assert set(values(browser)) == set(names)
    assert find(browser, ".predicted p").text == f"Predicted {target}"
    assert browser.find_elements("css selector", "img") == []
    assert len(browser.find_elements("css selector", "script")) == 2
    assert browser.get_log("browser") == []


def test_figures_tell_values_to_mouse_and_keys(browser, waves):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_page(browser, waves[0])
    for ident in ("map0", "parity", "curve0"):
        plot = find(browser, f"[data-figure={ident}]")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        readout = find(browser, f"#read-{ident}")
        assert readout.text == ""
        ActionChains(browser).move_to_element(plot).perform()
        hovered = readout.text
        assert re.search(r"\d", hovered)
        ActionChains(browser).move_to_element(find(browser, "#theme")).perform()
        plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert re.search(r"\d", readout.text)
    name, value = re.match(r"(\w+) ([\d.]+): adds", find_text(browser, "curve0")).groups()
    curve = browser.execute_script(
        "return JSON.parse(document.getElementById('data').textContent).figures.curve0"
    )
    assert name == curve["names"][0]
    assert min(abs(float(value) - x) for x in curve["x"]) < 1e-3


def find_text(browser, ident):
    from selenium.webdriver.common.keys import Keys

    find(browser, f"[data-figure={ident}]").send_keys(Keys.ARROW_LEFT)
    return find(browser, f"#read-{ident}").text


def test_colours_follow_the_system_and_the_button(browser, waves):
    def ground():
        return find(browser, "body").value_of_css_property("background-color")

    open_page(browser, waves[0], colours="light")
    light = ground()
    open_page(browser, waves[0], colours="dark")
    dark = ground()
    assert light != dark
    button = find(browser, "#theme")
    assert button.text == "Theme: system"
    button.click()
    assert (ground(), button.text) == (light, "Theme: light")
    button.click()
    assert (ground(), button.text) == (dark, "Theme: dark")


@pytest.mark.parametrize("page", ["waves", "table"])
def test_no_sideways_scrolling_on_a_phone(browser, page, request):
    open_page(browser, request.getfixturevalue(page)[0], width=420)
    browser.execute_script(
        "document.querySelectorAll('details').forEach((e) => { e.open = true; })"
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 420


@pytest.mark.parametrize(
    ("page", "width", "colours"), [("waves", 1280, "light"), ("table", 420, "dark")]
)
def test_axe_finds_nothing(browser, page, width, colours, request):
    specs = filter(None, map(importlib.util.find_spec, AXE_PACKAGES))
    spec = next(specs, None)
    if spec is None:
        missing("none of the packages that carry axe-core is installed")
    open_page(browser, request.getfixturevalue(page)[0], width, colours)
    browser.execute_script(
        "document.querySelectorAll('details').forEach((e) => { e.open = true; })"
    )
    browser.execute_script(Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    browser.set_script_timeout(60)
    found = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations', 'passes']}).then(arguments[0])"
    )
    assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []
    # It did look: contrast is one of its rules.
    assert "color-contrast" in {rule["id"] for rule in found["passes"]}


def test_text_stands_out_from_its_ground():
    """WCAG AA: a contrast of 4.5, of lines 3, also where axe cannot see it, as in drawings."""
    style = (files("harfe.report.page") / "templates" / "report.css").read_text(encoding="utf-8")
    blocks = re.findall(r"--ground: .*?--warn", style, re.S)
    assert len(blocks) == 4

    def luminance(colour):
        if len(colour) == 4:
            colour = "#" + "".join(2 * digit for digit in colour[1:])
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for block in blocks:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]+)", block))
        for ground in ("ground", "raised"):
            for ink in ("ink", "quiet", "c1", "c2", "c3", "c4"):
                pair = sorted([luminance(colours[ground]), luminance(colours[ink])])
                least = 4.5 if ink in ("ink", "quiet", "c1") else 3
                assert (pair[1] + 0.05) / (pair[0] + 0.05) >= least, (ground, ink, colours)
