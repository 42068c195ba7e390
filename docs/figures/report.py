"""Take a screenshot of the top of a report page: ``python docs/figures/report.py``.

Needs selenium, and chromium with chromedriver on PATH. The page is the report on a
model of the table that ``harfe demo --csv`` writes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from harfe.cli.main import main as harfe

WIDTH, HEIGHT = 1280, 974
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic "
    "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
    "--hide-scrollbars --force-device-scale-factor=1"
)


def main() -> None:
    """Write a report, open it in a browser and save a screenshot."""
    with tempfile.TemporaryDirectory() as folder:
        table, page = Path(folder, "houses.csv"), Path(folder, "report.html")
        words = ["--target", "y", "-o", str(Path(folder, "model.harfe")), "--report", str(page)]
        for command in (["demo", "--csv", str(table)], ["fit", str(table), *words]):
            if harfe(command):
                sys.exit(1)
        photograph(page, Path(__file__).with_name("report.png"), Path(folder, "profile"))


def photograph(page: Path, picture: Path, profile: Path) -> None:
    """Save the first screen of a page, at the width of a laptop."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        # The size of the page itself: a window also has a frame.
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page.as_uri())
        browser.save_screenshot(str(picture))
    finally:
        browser.quit()
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
