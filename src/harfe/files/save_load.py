"""Save, load and describe fitted models."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from harfe._core.arguments import is_whole
from harfe.estimators.regressor import HARFERegressor
from harfe.estimators.regressor_cv import HARFERegressorCV
from harfe.files import container as model_file
from harfe.files.container import ModelFileError
from harfe.files.model_parts import ATTRIBUTES, DROPPED_ATTRIBUTES, SEARCH_ATTRIBUTES
from harfe.files.plain_data import NotPlain, Reader, Writer
from harfe.files.specs import ByName, Plain, Spec, Text
from harfe.files.wrapped import Wrapped
from harfe.model.pool_origin import PoolOrigin

FORMAT = "harfe-model"
FORMAT_VERSION = 1

#: Default limit on the memory that the content of a file may take: 1 GiB.
MAX_BYTES = 2**30

_CLASSES: dict[str, type] = {
    "HARFERegressor": HARFERegressor,
    "HARFERegressorCV": HARFERegressorCV,
}
_LONGEST_REPR = 200

# Errors that values of the wrong kind raise where no check has caught them.
_MISFITS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    encoder: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file, completely or not at all.

    Equal models give equal files. Training rows are not stored, only what the model itself keeps of
    them (`inputs_`, magnitudes of out-of-fold residuals). Parameters that are not plain data, such
    as functions, splitters and callbacks, are stored only as text: a loaded model has the default
    instead. The folds that ``warm_start=True`` would reuse are not stored.

    Parameters
    ----------
    model : HARFERegressor, HARFERegressorCV or TableModel
        Fitted.
    path : str or path
        Usually ``something.harfe``. An existing file is replaced.
    encoder : dict, optional
        How tables become inputs, as returned by `TableEncoder.to_dict`; `load` then returns a
        `TableModel`. By default, that of a `TableModel`.
    meta : dict, optional
        Plain data about the origin of the model.

    Notes
    -----
    Scikit-learn pipelines and searches that contain an estimator can be saved with skops, which
    does not run unlisted code either. The types that it asks you to trust should be types of harfe;
    check the list first::

        skops.io.dump(pipeline, "model.skops")
        types = skops.io.get_untrusted_types(file="model.skops")
        pipeline = skops.io.load("model.skops", trusted=types)

    Examples
    --------
    >>> import tempfile, harfe
    >>> from harfe.datasets import make_function
    >>> data = make_function("friedman1", 100, random_state=0)
    >>> model = harfe.HARFERegressor(random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     harfe.save(model, f"{folder}/model.harfe")
    ...     again = harfe.load(f"{folder}/model.harfe")
    >>> bool((again.predict(data.X) == model.predict(data.X)).all())
    True
    """
    if isinstance(model, Wrapped):
        encoder = model.encoder.to_dict() if encoder is None else encoder
        meta = dict(model.meta) if meta is None else meta
        model = model.model
    name: str = type(model).__name__
    if name not in _CLASSES or not _is_exactly(model, _CLASSES[name]):
        raise ValueError(
            f"model={model!r} must be a fitted HARFERegressor or HARFERegressorCV; for pipelines "
            "and searches that contain one, use skops"
        )
    check_is_fitted(model, "inputs_")
    writer = Writer(model.n_features_in_)
    plain, other = _write_params(model, writer)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": {"harfe": version("harfe"), "numpy": np.__version__},
        "estimator": name,
        "columns": list(model.expansion_.columns),
        "params": plain,
        "other_params": other,
        "state": _write_state(model, writer),
        "encoder": _write_given("encoder", encoder, writer),
        "meta": _write_given("meta", meta, writer),
    }
    model_file.write(path, header, writer.arrays)


def load(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Any:
    """Read a model written by `save`; its predictions are the same, bit for bit.

    No code in the file is run. A file that is not a complete and valid model file raises
    `ModelFileError`, a `ValueError` that says what is wrong.

    Parameters
    ----------
    path : str or path
    max_bytes : int, default=2**30
        Memory that the content may take; a file that needs more is rejected before it is allocated.

    Returns
    -------
    HARFERegressor, HARFERegressorCV or TableModel
        A `TableModel` if the file contains an encoder. All N features (`weights_`, `bias_`) are
        drawn again on first use.
    """
    header, arrays = _read(path, max_bytes)
    try:
        columns = header["columns"]
        if not isinstance(columns, list) or header["estimator"] not in _CLASSES:
            raise ModelFileError(
                "the model file is not valid: it has no columns or no known estimator"
            )
        reader = Reader(arrays, {"d": len(columns)})
        model = _read_model(header, reader)
        encoder = Plain().read(header["encoder"], "encoder", reader)
        meta = Plain().read(header["meta"], "meta", reader)
        reader.close()
        return model if encoder is None else _table_model(encoder, model, meta)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error
    except _MISFITS as error:
        raise ModelFileError(
            f"{os.fspath(path)}: the model file is not valid ({type(error).__name__}: {error})"
        ) from error


def describe(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return what a model file says about itself, without building the model.

    Parameters
    ----------
    path, max_bytes
        As for `load`.

    Returns
    -------
    dict
        ``format``, ``version``, ``written_by`` (versions of harfe and NumPy), ``estimator``,
        ``columns``, and ``meta`` and ``encoder`` as passed to `save`.
    """
    header, arrays = _read(path, max_bytes)
    reader = Reader(arrays, {})
    names = ("format", "version", "written_by", "estimator", "columns", "meta", "encoder")
    return {name: Plain().read(header.get(name), name, reader) for name in names}


def _read(path: str | os.PathLike[str], max_bytes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    if not is_whole(max_bytes) or max_bytes < 1:
        raise ValueError(f"max_bytes={max_bytes!r} must be a whole number of bytes, e.g. 2**30")
    header, arrays = model_file.read(path, int(max_bytes))
    found = header.get("version")
    if header.get("format") != FORMAT or type(found) is not int or found < 1:
        raise ModelFileError(f"{os.fspath(path)} is not a harfe model file: it has another format")
    if found > FORMAT_VERSION:
        writer = header.get("written_by")
        own = writer.get("harfe", "a newer version") if isinstance(writer, dict) else "unknown"
        raise ModelFileError(
            f"{os.fspath(path)} has format {found}, written by harfe {own}, but this harfe "
            f"({version('harfe')}) reads formats up to {FORMAT_VERSION}; install a newer harfe"
        )
    return header, arrays


def _is_exactly(model: Any, kind: type) -> bool:
    """Whether the model is not of a subclass, which may have state that the file would lose."""
    return type(model) is kind


def _specs(name: str) -> dict[str, Spec]:
    return ATTRIBUTES | (SEARCH_ATTRIBUTES if name == "HARFERegressorCV" else {})


def _write_params(model: Any, writer: Writer) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters that are plain data, and the `repr` of the others."""
    plain, other = {}, {}
    for name, value in model.get_params(deep=False).items():
        trial = Writer(writer.n_variables)
        try:
            Plain().write(value, name, trial)
        except (NotPlain, RecursionError):
            other[name] = repr(value)[:_LONGEST_REPR]
        else:
            plain[name] = Plain().write(value, f"params.{name}", writer)
    return plain, other


def _write_state(model: Any, writer: Writer) -> dict[str, Any]:
    state = dict(vars(model))
    state.setdefault("feature_names_in_", None)
    # A loaded model that has not drawn its pool keeps the origin from its file.
    if model._drawn is not None:
        state["_pool_origin"] = PoolOrigin.of(
            model._pool, model.law_, model.seed_, model._pool_units
        )
    specs = _specs(type(model).__name__)
    return {name: spec.write(state[name], name, writer) for name, spec in specs.items()}


def _write_given(name: str, value: dict[str, Any] | None, writer: Writer) -> Any:
    try:
        return Plain().write(value, name, writer)
    except (NotPlain, RecursionError) as error:
        raise ValueError(
            f"{name} must hold plain data only (numbers, text, lists, dicts): {error}"
        ) from error


def _read_model(header: dict[str, Any], reader: Reader) -> Any:
    make = _CLASSES[header["estimator"]]
    model = make(**_read_params(header, make, reader))
    specs = _specs(header["estimator"])
    state = {name: spec.read(header["state"][name], name, reader) for name, spec in specs.items()}
    for name, spec in DROPPED_ATTRIBUTES.items():
        if name in header["state"]:
            spec.read(header["state"][name], name, reader)
    support, N = state["support_"], state["n_components_"]
    places = state["_pool_origin"].places
    for name, chosen in (("support_", support), ("_pool_origin.places", places)):
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= N):
            raise ModelFileError(f"the model file is not valid: {name} is beyond {N} features")
    if state["_y_ndim"] == 1 and reader.sizes["t"] != 1:
        raise ModelFileError(
            "the model file is not valid: one target has several rows of coefficients"
        )
    names = state.pop("feature_names_in_")
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    uncertainty = state["uncertainty_"]
    if uncertainty is not None:
        posterior = replace(uncertainty.posterior, expansion=state["expansion_"])
        state["uncertainty_"] = replace(uncertainty, posterior=posterior)
    state |= {"_drawn": None, "_pool_units": state["_pool_origin"].units}
    vars(model).update(state)
    if header["estimator"] == "HARFERegressorCV":
        model._finished = {}
    return model


def _read_params(header: dict[str, Any], make: type, reader: Reader) -> dict[str, Any]:
    """Return the stored parameters; warn about those that were not stored."""
    given = ByName(Plain()).read(header["params"], "params", reader)
    lost = ByName(Text()).read(header["other_params"], "other_params", reader)
    known = make().get_params(deep=False)
    lost |= {name: repr(value) for name, value in given.items() if name not in known}
    if lost:
        listed = ", ".join(f"{name}={text}" for name, text in lost.items())
        warnings.warn(
            f"These parameters are not stored in model files and now have their defaults: {listed}."
            " Predictions do not depend on them; set them again before another fit",
            UserWarning,
            stacklevel=4,
        )
    return {name: value for name, value in given.items() if name in known}


def _table_model(encoder: Any, model: Any, meta: Any) -> Any:
    from harfe.tables import TableEncoder, TableModel

    try:
        learned = TableEncoder.from_dict(encoder)
    except _MISFITS as error:
        raise ModelFileError(f"the model file is not valid: encoder ({error})") from error
    return TableModel(learned, model, meta)
