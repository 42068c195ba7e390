"""Model files: what is loaded is what was saved, bit for bit; anything else is rejected."""

import io
import json
import os
import struct
import sys
import tracemalloc
import warnings
import zipfile
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import harfe
from harfe import FeatureLaw, HARFERegressor, HARFERegressorCV
from harfe import files as persist
from harfe.estimators import regressor_cv as selection
from harfe.features.activations import ACTIVATIONS
from harfe.features.mixed_law import MixedLaw
from harfe.files import ModelFileError
from harfe.files import container as model_file
from harfe.files.plain_data import NotPlain, Reader, Writer, read_plain, write_plain
from harfe.tables import TableModel

SMALL = {"n_components": 150, "n_nonzero_coefs": 12, "random_state": 0}
SEARCH = {
    "n_components": 150,
    "n_nonzero_coefs": [4, 8],
    "alphas": [1e-6, 1e-2],
    "cv": 3,
    "random_state": 0,
}
GRID = {**SEARCH, "law": "grid", "orders": [1, (1, 2)], "scales": [0.5, 1.0]}

# Not in the file by design: all features are drawn again, folds are not kept.
NOT_KEPT = {"_drawn", "_pool_origin", "_finished"}


def make(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=m)


@pytest.fixture(scope="module")
def xy():
    return make()


@pytest.fixture(scope="module")
def model(xy):
    return HARFERegressor(**SMALL, residual_cv=3).fit(*xy)


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.harfe"
    model.save(path)
    return path


def round_trip(model, tmp_path):
    harfe.save(model, tmp_path / "m.harfe")
    return harfe.load(tmp_path / "m.harfe")


def assert_same(a, b, where=""):
    """Equal in type and in every bit, recursively."""
    assert type(a) is type(b), where
    if is_dataclass(a):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        if a.dtype.kind == "O":
            assert_same(a.ravel().tolist(), b.ravel().tolist(), where)
        else:
            assert a.tobytes() == b.tobytes(), where
            # LAPACK takes another path, with other bits, for the other layout.
            assert not a.flags.forc or a.flags.f_contiguous == b.flags.f_contiguous, where
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for k, (left, right) in enumerate(zip(a, b, strict=True)):
            assert_same(left, right, f"{where}.{k}")
    elif isinstance(a, set | frozenset):
        assert sorted(map(repr, a)) == sorted(map(repr, b)), where
    elif isinstance(a, Enum):
        assert a is b, where
    else:
        assert repr(a) == repr(b), where


def assert_same_model(model, again, X):
    kept = {name: value for name, value in vars(model).items() if name not in NOT_KEPT}
    back = {name: value for name, value in vars(again).items() if name not in NOT_KEPT}
    assert_same(dict(sorted(kept.items())), dict(sorted(back.items())))
    assert_same(model.predict(X), again.predict(X))
    if model.uncertainty_ is not None:
        assert_same(model.predict(X, return_std=True), again.predict(X, return_std=True))
        assert again.uncertainty_.posterior.expansion is again.expansion_
    assert_same(model._pool, again._pool)
    assert_same(model.coef_, again.coef_)


# --- the way there and back ----------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_comes_back(xy, tmp_path, activation):
    model = HARFERegressor(**SMALL, activation=activation, residual_cv=3).fit(*xy)
    assert_same_model(model, round_trip(model, tmp_path), xy[0])


@pytest.mark.parametrize("kind", ["data", "matched", "refined"])
def test_every_kind_of_search_under_a_learned_law_comes_back(xy, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(selection, "KINDS", (kind,))
    model = HARFERegressorCV(**SEARCH).fit(*xy)
    assert model.fit_ == kind
    again = round_trip(model, tmp_path)
    assert_same_model(model, again, xy[0])
    assert again.learned_law_.summary() == model.learned_law_.summary()
    # Only trained features are in the file; the others are drawn again.
    trained = model.support_ if kind == "refined" else []
    assert again._pool_origin.places.tolist() == list(trained)


def test_a_grid_search_comes_back_with_its_table(xy, tmp_path):
    model = HARFERegressorCV(**GRID).fit(*xy)
    again = round_trip(model, tmp_path)
    assert_same_model(model, again, xy[0])
    assert again.cv_results_["params"] == model.cv_results_["params"]
    assert again.best_params_ == model.best_params_


def test_a_given_law_comes_back(xy, tmp_path):
    mixed = MixedLaw(
        (FeatureLaw(4, (1,), scale=(2,)), FeatureLaw(4, (2,), groups=((0, 1), (2, 3)))), (0.3, 0.7)
    )
    model = HARFERegressor(**SMALL, law=mixed).fit(*xy)
    again = round_trip(model, tmp_path)
    assert again.law == mixed
    assert_same_model(model, again, xy[0])
    # A law for other inputs, set after the fit, is not part of this model.
    model.set_params(law=FeatureLaw(7))
    with pytest.warns(UserWarning, match="law=FeatureLaw"):
        assert round_trip(model, tmp_path).law is None


@pytest.mark.parametrize("case", ["targets", "column", "complex", "complex exp", "clipped"])
def test_kinds_of_targets_and_inputs_come_back(xy, tmp_path, case):
    X, y = xy[0].copy(), xy[1]
    if case == "clipped":
        X[3, 1] = 1e6
    target = {
        "targets": np.column_stack([y, y**2]),
        "column": y[:, None],
        "complex": y + 1j * X[:, 1],
        "complex exp": y + 1j * X[:, 1],
        "clipped": y,
    }[case]
    activation = "exp" if case == "complex exp" else "sin"
    model = HARFERegressor(**SMALL, activation=activation, residual_cv=3).fit(X, target)
    again = round_trip(model, tmp_path)
    assert (again.expansion_.map is not None) == (case == "clipped")
    assert_same_model(model, again, X)


@pytest.mark.parametrize("link", ["log", "yeo-johnson"])
def test_links_come_back(xy, tmp_path, link):
    X, y = xy
    model = HARFERegressor(**SMALL, link=link, residual_cv=3).fit(X, np.exp(y))
    assert_same_model(model, round_trip(model, tmp_path), X)


def test_a_model_without_a_link_has_none_in_its_file(file):
    header, _ = model_file.read(file, 2**20)
    assert "link" not in header["state"]["expansion_"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "exp"}, "not one of log, yeo-johnson"),
        ({"power": {"~float": "nan"}}, "not possible"),
        ({"power": "1"}, "is not a number"),
        ({"unit": 0.0}, "not possible"),
        ({"lower": 5.0, "upper": 4.0}, "not possible"),
        ({"power": -2.0, "upper": 0.5}, "beyond its range"),
        ({"power": 4.0, "lower": -0.5}, "beyond its range"),
        ({"residuals": [None]}, "is not a number"),
        ({"more": 1}, "does not have the fields"),
    ],
)
def test_forged_links_are_refused(xy, tmp_path, changes, message):
    X, y = xy
    model = HARFERegressor(**SMALL, link="yeo-johnson").fit(X, np.exp(y))
    model.save(tmp_path / "m.harfe")

    def change(header, arrays):
        header["state"]["expansion_"]["link"] |= changes

    with pytest.raises(ModelFileError, match=message):
        harfe.load(forge(tmp_path / "m.harfe", tmp_path, change))


def test_names_of_columns_come_back(xy, tmp_path):
    names = ["age", "größe", "a,b\n", " "]
    frame = pd.DataFrame(xy[0], columns=names)
    model = HARFERegressor(**SMALL).fit(frame, xy[1])
    again = round_trip(model, tmp_path)
    assert_same_model(model, again, frame)
    assert again.term_names_ == model.term_names_
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"age": "years"}))


@pytest.mark.parametrize("refined", [True, False])
def test_a_model_with_fewer_terms_comes_back(xy, tmp_path, refined, monkeypatch):
    monkeypatch.setattr(selection, "KINDS", ("refined" if refined else "data",))
    model = HARFERegressorCV(**SEARCH).fit(*xy)
    # Other rows than those of the fit: the units of the features are still those of the fit.
    fewer = model.keep_terms(2, *make(seed=1))
    again = round_trip(fewer, tmp_path)
    assert_same_model(fewer, again, xy[0])
    assert len(again._pool_origin.places) == (len(model.support_) if refined else 0)


def test_a_loaded_model_explains_itself_and_goes_on(xy, tmp_path, model):
    again = round_trip(model, tmp_path)
    assert_same(model.explain().to_dict(), again.explain().to_dict())
    assert again.formula() == model.formula()
    assert_same(model.keep_terms(2, *xy).coef_, again.keep_terms(2, *xy).coef_)
    assert_same_model(model, round_trip(again, tmp_path), xy[0])
    assert_same(clone(again).fit(*xy).coef_, model.coef_)
    other = again.fit(xy[0], -xy[1])
    assert_same_model(other, round_trip(other, tmp_path), xy[0])


def test_parameters_come_back_with_their_types(xy, tmp_path):
    given = {
        "scale": np.array([1.0, 0.5, 2.0, 1.0]),
        "variable_weights": [1, 2.0, np.float32(0.1), 3],
        "interaction_cst": [{0, 1}, frozenset([2]), (3,)],
        "order": (1, 2),
        "noise_level": np.float64(0.5),
        "init": np.zeros(150),
        "tol": 0,
        "memory_budget": float("inf"),
    }
    model = HARFERegressor(**{**SMALL, **given}).fit(*xy)
    again = round_trip(model, tmp_path)
    assert_same(model.get_params(), again.get_params())


def test_parameters_that_are_no_data_are_named_and_have_their_default(xy, tmp_path):
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    settings = {**GRID, "cv": KFold(3), "scoring": scorer}
    model = HARFERegressorCV(**settings, interaction_cst="pairwise").fit(*xy)
    model.save(tmp_path / "m.harfe")
    with pytest.warns(UserWarning, match="now have their defaults: cv=KFold.*scoring=make_scorer"):
        again = harfe.load(tmp_path / "m.harfe")
    assert again.cv is None
    assert again.scoring is None
    assert again.interaction_cst == "pairwise"
    assert_same(model.predict(xy[0]), again.predict(xy[0]))


def test_a_parameter_that_this_version_does_not_know_is_named(file, tmp_path, xy, model):
    def change(header, arrays):
        header["params"]["brand_new"] = 3
        del header["params"]["tol"]

    path = forge(file, tmp_path, change)
    with pytest.warns(UserWarning, match="brand_new=3"):
        again = harfe.load(path)
    assert again.tol == HARFERegressor().tol
    assert_same(model.predict(xy[0]), again.predict(xy[0]))


def test_equal_models_make_equal_files_and_numpy_can_look_into_them(xy, model, tmp_path, file):
    model.save(tmp_path / "again.harfe")
    assert (tmp_path / "again.harfe").read_bytes() == file.read_bytes()
    harfe.load(file).save(tmp_path / "again.harfe")
    assert (tmp_path / "again.harfe").read_bytes() == file.read_bytes()
    with np.load(file, allow_pickle=False) as content:
        assert_same(content["expansion_.coef"], model.expansion_.coef)
        assert json.loads(content["header.json"])["format"] == "harfe-model"


def test_a_file_tells_what_it_is(model, tmp_path):
    model.save(tmp_path / "m.harfe", meta={"target": "medv", "rmse": (0.5, np.inf), 3: None})
    told = persist.describe(tmp_path / "m.harfe")
    assert told["estimator"] == "HARFERegressor"
    assert told["columns"] == ["x0", "x1", "x2", "x3"]
    assert told["written_by"] == {"harfe": harfe.__version__, "numpy": np.__version__}
    assert told["meta"] == {"target": "medv", "rmse": (0.5, np.inf), 3: None}
    assert told["encoder"] is None


def test_pools_that_cannot_be_drawn_again_are_told(file, model, monkeypatch, xy):
    again = harfe.load(file)
    draw = FeatureLaw.draw
    monkeypatch.setattr(
        FeatureLaw, "draw", lambda law, n, rng: draw(law, n, np.random.default_rng(5))
    )
    with pytest.warns(UserWarning, match="draws others"):
        weights = again.weights_
    assert_same(again.predict(xy[0]), model.predict(xy[0]))
    kept = weights[:, again.support_].toarray()
    assert_same(kept, model.weights_[:, model.support_].toarray())
    assert not np.array_equal(weights.toarray(), model.weights_.toarray())


@pytest.mark.parametrize("warp", ["none", "rank"])
def test_a_model_of_tables_comes_back(tmp_path, warp):
    X, y = make()
    table = {"size": X[:, 0], "color": ["red", "blue", "green"] * 20, "y": y}
    model = TableModel.fit(table, "y", HARFERegressor(**SMALL, input_warp=warp), missing="median")
    for path in (tmp_path / "a.harfe", tmp_path / "b.harfe"):
        harfe.save(model, path)
        again = harfe.load(path)
        assert again.encoder == model.encoder
        assert again.meta == model.meta
        assert_same(model.predict(table), again.predict(table))
        assert_same_model(model.model, again.model, model.encoder.encode(table))
        model = again
    assert (tmp_path / "a.harfe").read_bytes() == (tmp_path / "b.harfe").read_bytes()
    for odd in ([], {"columns": 3}, {"~tuple": []}):
        path = forge(tmp_path / "a.harfe", tmp_path, lambda h, _, odd=odd: h.update(encoder=odd))
        with pytest.raises(ModelFileError, match="encoder"):
            harfe.load(path)


# --- writing -------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_nothing_else(model, tmp_path, monkeypatch):
    path = tmp_path / "m.harfe"
    path.write_text("old")

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.harfe"]


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of files")
def test_a_link_stays_a_link_and_the_mode_is_the_usual_one(model, tmp_path):
    (tmp_path / "target.harfe").write_text("old")
    (tmp_path / "link.harfe").symlink_to("target.harfe")
    model.save(tmp_path / "link.harfe")
    assert (tmp_path / "link.harfe").is_symlink()
    harfe.load(tmp_path / "target.harfe")
    usual = tmp_path / "usual"
    usual.touch()
    model.save(tmp_path / "new.harfe")
    assert (tmp_path / "new.harfe").stat().st_mode == usual.stat().st_mode


def test_what_cannot_be_saved_is_refused(model, tmp_path, xy):
    class Mine(HARFERegressor):
        pass

    for wrong in (make_pipeline(StandardScaler(), model), Mine().fit(*xy), 3):
        with pytest.raises(ValueError, match="must be a fitted HARFERegressor"):
            harfe.save(wrong, tmp_path / "m.harfe")
    with pytest.raises(NotFittedError):
        HARFERegressor().save(tmp_path / "m.harfe")
    with pytest.raises(ValueError, match=r"meta must hold plain data only .* function"):
        model.save(tmp_path / "m.harfe", meta={"why": lambda: 0})
    loop = {}
    loop["loop"] = loop
    with pytest.raises(ValueError, match="meta must hold plain data"):
        model.save(tmp_path / "m.harfe", meta=loop)
    assert not list(tmp_path.iterdir())


# --- files that are not models -------------------------------------------------------------------


def seal(content):
    """Replace the fingerprint at the end of the content by the right one."""
    return content[:-64] + sha256(content[:-64]).hexdigest().encode()


def forge(file, tmp_path, change):
    """Write a file whose fingerprint is right but whose content was changed."""
    header, arrays = model_file.read(file, 2**30)
    change(header, arrays)
    model_file.write(tmp_path / "forged.harfe", header, arrays)
    return tmp_path / "forged.harfe"


def zipped(path, members, compression=zipfile.ZIP_DEFLATED, comment=b"0" * 64):
    """Write any zip file with a right fingerprint."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as out:
        for name, content in members:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # names that occur twice
                out.writestr(name, content)
        out.comment = comment
    path.write_bytes(seal(buffer.getvalue()))
    return path


def members_of(file):
    with zipfile.ZipFile(file) as content:
        return [(name, content.read(name)) for name in content.namelist()]


def npy(text, data=b""):
    text = text + " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_flipped_bit_goes_unnoticed(file, tmp_path_factory, data):
    content = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / "flipped.harfe"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        harfe.load(path)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_cut_and_no_addition_goes_unnoticed(file, tmp_path_factory, data):
    content = file.read_bytes()
    path = tmp_path_factory.getbasetemp() / "cut.harfe"
    start = data.draw(st.integers(0, 2))
    end = data.draw(st.integers(0, len(content) - 1))
    path.write_bytes(data.draw(st.sampled_from([content[start:end], content + content[: end + 1]])))
    with pytest.raises(ModelFileError):
        harfe.load(path)


def test_sentences_name_the_file_and_what_to_do(file, tmp_path):
    content = file.read_bytes()
    path = tmp_path / "m.harfe"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError, match=r"m\.harfe is damaged or incomplete.*save the model"):
        harfe.load(path)
    for wrong in (b"", b"a,b\n1,2\n", content[1:], b"\x80\x04" + content):
        path.write_bytes(wrong)
        with pytest.raises(ModelFileError, match=r"m\.harfe is not a harfe model file"):
            harfe.load(path)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ModelFileError, match="is not a harfe model file"):
        harfe.load(tmp_path / "other.npz")
    with pytest.raises(ModelFileError, match="is not a file"):
        harfe.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        harfe.load(tmp_path / "missing.harfe")
    for wrong in (0, -1, 1.5, "1", None):
        with pytest.raises(ValueError, match="max_bytes="):
            harfe.load(file, max_bytes=wrong)


def test_newer_and_foreign_formats_are_refused(file, tmp_path):
    def newer(header, arrays):
        header |= {"version": 2, "written_by": {"harfe": "9.1"}, "estimator": "Unheard"}

    with pytest.raises(ModelFileError, match=r"format 2, written by harfe 9\.1.*install a newer"):
        harfe.load(forge(file, tmp_path, newer))
    with pytest.raises(ModelFileError, match="install a newer"):
        persist.describe(forge(file, tmp_path, newer))
    for change in ({"version": "1"}, {"version": 0}, {"version": True}, {"format": "other"}):
        path = forge(file, tmp_path, lambda header, _, change=change: header.update(change))
        with pytest.raises(ModelFileError, match="another format"):
            harfe.load(path)


def test_no_memory_is_taken_beyond_the_limit(file, tmp_path):
    members = members_of(file)
    bomb = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2500000,), }", bytes(2 * 10**7))
    path = zipped(tmp_path / "bomb.harfe", [*members, ("bomb.npy", bomb)])
    del bomb
    deep = ",".join(["[" * 300 + "]" * 300] * 40)
    header = json.loads(dict(members)["header.json"])
    text = json.dumps({**header, "meta": 0}).replace('"meta": 0', f'"meta": [{deep}]')
    nested = zipped(tmp_path / "nested.harfe", [("header.json", text), *members[1:]])
    assert path.stat().st_size < 10**5
    limit, enough = 2 * 10**6, 5 * 10**7
    for hostile in (path, nested):
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="allowed; if you trust the file, pass a larger"):
            harfe.load(hostile, max_bytes=limit)
        assert tracemalloc.get_traced_memory()[1] < limit
        tracemalloc.stop()
    # With a sufficient limit, no more than that is allocated either.
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="bomb is not part of the model"):
        harfe.load(path, max_bytes=enough)
    assert tracemalloc.get_traced_memory()[1] < enough
    tracemalloc.reset_peak()
    harfe.load(nested, max_bytes=4 * 10**6)
    assert tracemalloc.get_traced_memory()[1] < 4 * 10**6
    tracemalloc.stop()
    with pytest.raises(ModelFileError, match="bytes of memory"):
        harfe.load(file, max_bytes=file.stat().st_size - 1)


def test_a_member_longer_than_it_declares_is_not_unpacked(file, tmp_path):
    members = members_of(file)
    zeros = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(10**7))
    path = zipped(tmp_path / "liar.harfe", [*members, ("liar.npy", zeros)])
    content = path.read_bytes()
    declared = struct.pack("<L", len(zeros))
    assert content.count(declared) == 2  # before the member, and in the list of members
    path.write_bytes(seal(content.replace(declared, struct.pack("<L", 136))))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        harfe.load(path)
    assert tracemalloc.get_traced_memory()[1] < 5 * 10**6
    tracemalloc.stop()
    path.write_bytes(seal(content.replace(declared, struct.pack("<L", len(zeros) + 1))))
    with pytest.raises(ModelFileError, match="not as long as declared"):
        harfe.load(path)


def test_containers_that_are_not_as_harfe_writes_them_are_refused(file, tmp_path):
    members = members_of(file)
    path = tmp_path / "m.harfe"
    for name in ("../evil.npy", "/etc/x.npy", "a/b.npy", "code.py", "x.npy\n", "ü.npy"):
        with pytest.raises(ModelFileError, match="not part of a model"):
            harfe.load(zipped(path, [*members, (name, b"")]))
    with pytest.raises(ModelFileError, match="parts with the same name"):
        harfe.load(zipped(path, [*members, members[-1]]))
    with pytest.raises(ModelFileError, match="in a compression or encryption"):
        harfe.load(zipped(path, members, zipfile.ZIP_BZIP2))
    with pytest.raises(ModelFileError, match="more parts than a model has"):
        harfe.load(zipped(path, [*members, *((f"{k}.npy", b"") for k in range(6000))]))
    with pytest.raises(ModelFileError, match="more parts than a model has"):
        harfe.load(zipped(path, members, comment=b"PK\x05\x06" + b"0" * 18 + b"0" * 64))
    for header in (b"[]", b"{", b"\xff", b"[" * 10**5, b'{"version": NaN}', b"1" * 5000):
        with pytest.raises(ModelFileError):
            harfe.load(zipped(path, [("header.json", header), *members[1:]]))
    content = zipped(path, members).read_bytes()
    first, last = content.split(b"header.json", 1)
    path.write_bytes(seal(first + b"header.json" + last.replace(b"header.json", b"headed.npys")))
    with pytest.raises(ModelFileError, match=r"has no header\.json"):
        harfe.load(path)
    harfe.load(zipped(path, members, zipfile.ZIP_STORED))
    assert [p.name for p in tmp_path.iterdir()] == ["m.harfe"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x02\x00" + bytes(100),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, -1), }", bytes(8)),
        npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
        npy("{'descr': '<f8', 'fortran_order': __import__('os'), 'shape': (1,), }", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(9)),
    ],
)
def test_arrays_that_are_none_are_refused(file, tmp_path, content):
    members = [(name, content if name == "support_.npy" else old) for name, old in members_of(file)]
    with pytest.raises(ModelFileError, match=r"cannot be read \(an array"):
        harfe.load(zipped(tmp_path / "m.harfe", members))


def replaced(name, value):
    def change(header, arrays):
        arrays[name] = np.asarray(value)

    return change


def told(*path_and_value):
    *path, last, value = path_and_value

    def change(header, arrays):
        place = header["state"]
        for step in path:
            place = place[step]
        place[last] = value

    return change


def trained(places):
    def change(header, arrays):
        arrays["_pool_origin.places"] = np.array(places)
        arrays["_pool_origin.features.indices"] = np.zeros((2, 2), dtype=np.intp)
        arrays["_pool_origin.features.values"] = np.zeros((2, 2))
        arrays["_pool_origin.features.phases"] = np.zeros(2)

    return change


def plus(meta, **more):
    def change(header, arrays):
        header["meta"] = meta
        arrays.update(more)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("expansion_.features.indices", np.full((12, 2), 4)), "beyond the 4"),
        (replaced("expansion_.features.indices", np.full((12, 2), -2)), "beyond the 4"),
        (replaced("expansion_.features.indices", np.zeros((12, 2))), "array of float64"),
        (replaced("expansion_.features.values", np.zeros((12, 3))), "3 entries instead of 2"),
        (replaced("expansion_.features.values", np.zeros((12, 2), order="F")), "by rows"),
        (replaced("expansion_.features.phases", np.zeros(11)), "11 entries instead of 12"),
        (replaced("expansion_.coef", np.zeros(12)), r"shape \(12,\)"),
        (replaced("expansion_.coef", np.zeros((1, 12), complex)), "complex in a real model"),
        (replaced("expansion_.coef", np.array("text")), "array of <U4"),
        (replaced("support_", np.arange(139, 151)), "beyond 150 features"),
        (replaced("inputs_.partner", np.full(4, 4)), "partners that are not inputs"),
        (replaced("inputs_.joint", np.zeros((12, 3), complex)), "mean for every subset"),
        (replaced("inputs_.law.nodes.lengths", np.array([-1, 1, 1, 1])), "lengths"),
        (replaced("uncertainty_.posterior.factor", np.zeros((12, 11))), "11 entries"),
        (replaced("_pool_origin.places", np.array([0])), "entries instead of"),
        (replaced("extra", np.zeros(1)), "extra is not part of the model"),
        (told("inputs_", "law", "nodes", ["inputs_.law.nodes"]), "numbers and lengths"),
        (trained([1, 0]), "places that are not increasing"),
        (trained([149, 150]), "beyond 150 features"),
        (told("law_", "FeatureLaw", "n_variables", 10**9), "entries instead of 4"),
        (told("law_", "FeatureLaw", "orders", [9]), "order=9 is larger"),
        (told("law_", "FeatureLaw", "activation", "system"), "activation="),
        (told("law_", {"Popen": {}}), "not one of FeatureLaw, MixedLaw"),
        (told("law_", "FeatureLaw", "scale", ["1"]), "not a number"),
        (told("_stop_reason", "__class__"), "not one of RESIDUAL"),
        (told("n_components_", 10**15), "not a whole number"),
        (told("n_components_", True), "not a whole number"),
        (told("n_features_in_", 5), "5 entries instead of 4"),
        (told("_y_ndim", 3), "not a whole number from 1 to 2"),
        (told("expansion_", "columns", ["a", "b", "c", 3]), "is 3, not text"),
        (told("expansion_", "complex_output", 0), "neither true nor false"),
        (told("expansion_", "features", None), "does not have the fields"),
        (told("expansion_", "coef", "support_"), "array of int64"),
        (told("expansion_", "coef", ["a"]), "does not name an array"),
        (told("history_", []), "not a JSON object"),
        (told("uncertainty_", "posterior", "expansion", None), "does not have the fields"),
        (lambda header, arrays: header.pop("state"), "KeyError"),
        (lambda header, arrays: header["state"].pop("seed_"), "KeyError"),
        (lambda header, arrays: header.update(estimator="Pipeline"), "no known estimator"),
        (lambda header, arrays: header.update(columns={}), "no columns"),
        (lambda header, arrays: header.update(params=[]), "not a JSON object"),
        (lambda header, arrays: header.update(other_params=[[]]), "not a JSON object"),
        (plus({"~eval": ["1"]}), "does not support"),
        (plus({"~eval": "1"}), "does not support"),
        (plus({"~set": [[]]}), "is not a valid ~set"),
        (plus({"~range": [0, 1, 0]}), "is not a valid ~range"),
        (plus({"~tuple": [], "a": 1}), "more keys than ~tuple"),
        (plus({"~scalar": "extra"}, extra=np.zeros(2)), "not a single number"),
        (plus({"~objects": [], "shape": [10**12, 0, -1]}), "has the shape"),
    ],
)
def test_content_that_is_no_model_is_refused(file, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=rf"forged\.harfe.*{message}"):
        harfe.load(forge(file, tmp_path, change))


def test_one_target_has_one_row_of_coefficients(xy, tmp_path):
    model = HARFERegressor(**SMALL).fit(xy[0], np.column_stack([xy[1], xy[1]]))
    model.save(tmp_path / "m.harfe")
    with pytest.raises(ModelFileError, match="one target has several"):
        harfe.load(forge(tmp_path / "m.harfe", tmp_path, told("_y_ndim", 1)))


def leaves(value, path=()):
    if isinstance(value, dict):
        yield path
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        yield path
        for key, part in enumerate(value):
            yield from leaves(part, (*path, key))
    else:
        yield path


ODD = [None, True, -1, 0, 1, 3, 2**31, 10**30, 0.5, 1e308, "", "sin", [], {}, [[]], {"~tuple": [1]}]


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_forged_values_are_refused_or_harmless(file, tmp_path_factory, xy, data):
    """Any content with a right fingerprint gives an error or a model that predicts."""

    def change(header, arrays):
        if data.draw(st.booleans()):
            path = data.draw(st.sampled_from([p for p in leaves(header) if p]))
            place = header
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = data.draw(st.sampled_from(ODD))
        else:
            name = data.draw(st.sampled_from(sorted(arrays)))
            array = arrays[name]
            odd = [array[:-1], array.T, array * 0 - 7, array[None], array.astype(complex)]
            odd += [
                array * 0 + 2**40,
                array.real.astype(np.float32),
                np.concatenate([array, array]),
            ]
            arrays[name] = data.draw(st.sampled_from(odd))

    path = forge(file, tmp_path_factory.getbasetemp(), change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            again = harfe.load(path)
        except ModelFileError:
            return
    assert again.predict(xy[0]).shape[0] == 60


# --- plain data ----------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.complex_numbers()
)
plain = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.just("~a")), inner),
        st.frozensets(scalars, max_size=3),
        st.sets(st.integers(), max_size=3),
    ),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None)
@given(plain)
def test_plain_data_is_the_same_after_json(value):
    writer = Writer(3)
    text = json.dumps(write_plain(value, "v", writer), allow_nan=False)
    back = read_plain(json.loads(text), "v", Reader(writer.arrays, {}))
    assert_same(value, back)


def test_arrays_are_the_same_and_objects_are_not_plain():
    mixed = np.empty((2, 2), dtype=object)
    mixed[:] = [[1, (1, 2)], [None, "a"]]
    values = [mixed, np.array(["a", "bcd"]), np.float32(0.1), range(1, 7, 2), np.eye(2, dtype=bool)]
    writer = Writer(3)
    data = json.loads(json.dumps(write_plain(values, "v", writer)))
    assert_same(values, read_plain(data, "v", Reader(writer.arrays, {})))
    alike = {"a b": np.zeros(1), "a_b": np.ones(2), "ä b": np.ones(3)}
    data = write_plain(alike, "v", writer)
    assert_same(alike, read_plain(data, "v", Reader(writer.arrays, {})))
    for odd in (len, KFold(3), np.datetime64("2020-01-01"), np.array([len]), {1: object()}, b"x"):
        with pytest.raises(NotPlain):
            write_plain(odd, "v", Writer(3))
    with pytest.raises(NotPlain):
        write_plain(np.array(["2020-01-01"], dtype="M8[D]"), "v", Writer(3))


# --- other ways to keep a model ------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [HARFERegressor(**SMALL), HARFERegressorCV(**GRID)])
def test_skops_keeps_pipelines(xy, tmp_path, estimator):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model = make_pipeline(StandardScaler(), clone(estimator)).fit(*xy)
    skops.dump(model, tmp_path / "m.skops")
    trusted = skops.get_untrusted_types(file=tmp_path / "m.skops")
    assert all(name.startswith("harfe.") for name in trusted), trusted
    again = skops.load(tmp_path / "m.skops", trusted=trusted)
    assert_same(model.predict(xy[0]), again.predict(xy[0]))


@pytest.fixture(scope="module")
def warped(tmp_path_factory):
    """A model file with each warp, and the model."""
    X, y = make()
    X = np.exp(2 * X) - [0, 1, 0, 0]
    model = HARFERegressor(**SMALL, input_warp="log").fit(X, y)
    ranked = HARFERegressor(**SMALL, input_warp="rank").fit(X, y)
    found = model.expansion_.map
    warps = (*found.warps[:3], ranked.expansion_.map.warps[3])
    assert [type(warp).__name__ for warp in warps] == ["Log", "Asinh", "Log", "Rank"]
    model.expansion_ = replace(model.expansion_, map=replace(found, warps=warps))
    path = tmp_path_factory.mktemp("warped") / "m.harfe"
    model.save(path)
    return path, model, X


@pytest.mark.parametrize("warp", ["log", "rank"])
def test_warps_come_back(xy, tmp_path, warp):
    X = np.exp(2 * xy[0]) - [0, 1, 0, 0]
    model = HARFERegressor(**SMALL, residual_cv=3, input_warp=warp).fit(X, xy[1])
    assert model.expansion_.map.warped.any()
    again = round_trip(model, tmp_path)
    assert again.input_warp == warp
    assert_same_model(model, again, X)


def test_all_kinds_of_warps_come_back(warped):
    path, model, X = warped
    np.testing.assert_array_equal(harfe.load(path).predict(X), model.predict(X))


def without(*path):
    *path, last = path

    def change(header, arrays):
        place = header["state"]
        for step in path:
            place = place[step]
        del place[last]

    return change


MAP = ("expansion_", "bounds")
RANK = (*MAP, "warps", 3, "Rank")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("expansion_.bounds.lower", np.zeros(4)), "logarithm of an input that may not"),
        (replaced("expansion_.bounds.lower", np.full(4, np.nan)), "logarithm of an input that may"),
        (told(*MAP, "warps", 1, "Asinh", "scale", 0.0), "positive scale"),
        (told(*MAP, "warps", 1, "Asinh", "scale", -1), "positive scale"),
        (told(*MAP, "warps", 1, "Asinh", "centre", {"~float": "nan"}), "finite centre"),
        (told(*MAP, "warps", 1, {"Exec": {}}), "not one of Log, Asinh, Rank"),
        (told(*MAP, "warps", [None]), "a warp or none for each input"),
        (told(*MAP, "warps", None), "not a list"),
        (without(*RANK, "knots"), "does not have the fields"),
    ],
)
def test_forged_warps_are_refused(warped, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        harfe.load(forge(warped[0], tmp_path, change))


@pytest.mark.parametrize("name", ["knots", "values"])
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:0],
        lambda a: a[:1],
        lambda a: a[::-1],
        lambda a: np.append(a[1:], a[-1]),
        lambda a: np.append(a[:-1], np.inf),
        lambda a: np.append(np.nan, a[1:]),
        lambda a: a[:-1],
    ],
)
def test_forged_knots_are_refused(warped, tmp_path, name, change):
    path, model, _ = warped
    numbers = getattr(model.expansion_.map.warps[3], name)
    forged = forge(path, tmp_path, replaced(f"expansion_.bounds.warps.3.{name}", change(numbers)))
    with pytest.raises(ModelFileError, match=r"knots that do not increase|each of 2 to 33 knots"):
        harfe.load(forged)


def test_too_many_knots_are_refused(warped, tmp_path):
    def change(header, arrays):
        for name in ("knots", "values"):
            arrays[f"expansion_.bounds.warps.3.{name}"] = np.arange(34.0)

    with pytest.raises(ModelFileError, match="2 to 33 knots"):
        harfe.load(forge(warped[0], tmp_path, change))


def test_files_from_before_warps_load_and_look_the_same(xy, tmp_path):
    X = xy[0].copy()
    X[3, 1] = 1e6
    model = HARFERegressor(**SMALL).fit(X, xy[1])
    model.save(tmp_path / "m.harfe")
    header, _ = model_file.read(tmp_path / "m.harfe", 2**30)
    assert set(header["state"]["expansion_"]["bounds"]) == {"lower", "upper"}
    old = forge(tmp_path / "m.harfe", tmp_path, lambda h, arrays: h["params"].pop("input_warp"))
    again = harfe.load(old)
    assert again.input_warp == "none"
    assert_same_model(model, again, X)


def test_files_that_hold_importances_still_load(xy, tmp_path):
    """They did before importances were computed on demand."""
    model = HARFERegressor(**SMALL).fit(*xy)
    path = tmp_path / "old.harfe"
    model.save(path)
    header, arrays = model_file.read(path, 2**30)
    arrays["feature_importances_"] = np.full(model.n_features_in_, 9.0)
    header["state"]["feature_importances_"] = "feature_importances_"
    model_file.write(path, header, arrays)
    again = harfe.load(path)
    assert "feature_importances_" not in vars(again)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
