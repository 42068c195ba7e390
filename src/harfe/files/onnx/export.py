"""A fitted model as an ONNX graph: inputs clipped, warped and centred, s features, their sum.

All numbers have one type, double or float. Cosines are written as sines shifted by a quarter turn:
runtimes supported Sin in double long before Cos.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from harfe._core.arguments import check_choice
from harfe._core.atomic_write import atomic_write
from harfe.features.units import Asinh, InputMap, Log, Rank
from harfe.files.onnx.function import StatedFunction, warn_of_cancelling
from harfe.files.onnx.graph import PARTS, Graph
from harfe.files.onnx.link import add_link
from harfe.files.wrapped import Wrapped
from harfe.model.terms import group_features, term_names

DTYPES = ("float64", "float32")


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    dtype: str = "float64",
    terms: bool = False,
) -> Any:
    """Convert a fitted model to an ONNX graph, and write it to a file if `path` is given.

    The graph has one input ``X`` of shape (rows, inputs). That of a `TableModel` has an input of
    shape (rows, 1) for every column, with the same name: numbers, or text for categories, which
    must be spelled like the levels in the encoder. Unseen levels are treated as in the encoder.
    Missing values are NaN, the empty text, or what the encoder treats as missing; they are filled
    if the encoder fills them, otherwise the outputs of such rows are NaN.

    The output ``prediction`` has the same shape as the result of `predict`; complex models have
    ``prediction_real`` and ``prediction_imag``. Names of columns and terms are in the metadata of
    the graph, as JSON under ``columns`` and ``terms``. With a link, terms add up to the sum on its
    scale, and ``prediction`` is in the units of the target.

    Parameters
    ----------
    model : HARFERegressor, HARFERegressorCV or TableModel
        Fitted.
    path : str or path, optional
        File to write.
    dtype : {"float64", "float32"}, default="float64"
        Type of the inputs, the intermediate values and the outputs.
    terms : bool, default=False
        Add an output ``terms`` of the same shape as the result of `eval_terms`.

    Returns
    -------
    onnx.ModelProto
    """
    check_choice("dtype", dtype, DTYPES)
    encoder = None
    if isinstance(model, Wrapped):
        model, encoder = model.model, model.encoder
    check_is_fitted(model, "inputs_")
    graph = Graph(np.dtype(dtype))
    absent = None
    if encoder is None:
        X = graph.input("X", len(model.expansion_.columns))
    else:
        X, absent = encoder.add_to(graph)
    function = StatedFunction.of(model.expansion_, model.inputs_, graph.dtype)
    warn_of_cancelling(function, model.expansion_, model.inputs_, graph.dtype)
    sets = list(group_features(model.expansion_).values())
    shape = () if model._y_ndim == 1 else (len(model.expansion_.coef),)
    parts = PARTS[1:] if model.expansion_.complex_output else PARTS[:1]
    arguments = _arguments(graph, X, function)
    values = [own.nodes(graph, z) for own, z in zip(function.sums, arguments, strict=True)]
    for part, take in zip(parts, (np.real, np.imag), strict=False):
        coef = [take(own.coef) for own in function.sums]
        value = _total(graph, values, [c.T for c in coef], take(function.constant))
        if model.expansion_.link is not None:
            value = add_link(graph, value, model.expansion_.link)
        graph.output(f"prediction{part}", _blank(graph, value, absent), shape)
        if terms:
            value = _total(
                graph,
                values,
                [_by_term(c, sets).reshape(c.shape[1], -1) for c in coef],
                _by_term(take(function.constants), sets).sum(axis=0).ravel(),
            )
            graph.output(f"terms{part}", _blank(graph, value, absent), (len(sets), *shape))
    metadata = {"columns": json.dumps(list(model.expansion_.columns))}
    if terms:
        metadata["terms"] = json.dumps(term_names(model.expansion_))
    if encoder is not None:
        metadata["table_columns"] = json.dumps(list(encoder.columns_in))
        metadata["target"] = json.dumps(encoder.target)
    proto = graph.model(metadata)
    if path is not None:
        with atomic_write(path) as file:
            file.write(proto.SerializeToString())
    return proto


def _arguments(graph: Graph, X: str, function: StatedFunction) -> list[str]:
    """Arguments z_j + phase_j of every sum, shape (rows, s)."""
    X = graph.op("Gather", X, graph.constant(function.used, np.int64), axis=1)
    if function.map is not None:
        X = _mapped(graph, X, function.map)
    X = graph.op("Sub", X, graph.constant(function.centre))
    X = graph.op("Mul", X, graph.constant(1 / function.spread))
    products = []
    for indices, values in zip(function.indices.T, function.values.T, strict=True):
        inputs = graph.op("Gather", X, graph.constant(indices, np.int64), axis=1)
        products.append(graph.op("Mul", inputs, graph.constant(values)))
    z = graph.sum(products)
    return [graph.op("Add", z, graph.constant(own.phases)) for own in function.sums]


def _mapped(graph: Graph, X: str, own: InputMap) -> str:
    """Clip and warp the inputs in use."""
    if own.finite.any():
        X = graph.op("Max", X, graph.constant(own.lower))
        X = graph.op("Min", X, graph.constant(own.upper))
    if not own.warped.any():
        return X
    columns = []
    for k in range(len(own.lower)):
        x, warp = graph.op("Gather", X, graph.constant([k], np.int64), axis=1), own.warp_of(k)
        columns.append(x if warp is None else _WARPS[type(warp)](graph, x, warp))
    return graph.op("Concat", *columns, axis=1)


def _asinh(graph: Graph, x: str, warp: Asinh) -> str:
    """sign(u) log(|u| + √(u² + 1)): runtimes have no Asinh in double."""
    u = graph.op("Sub", x, graph.constant(warp.centre))
    u = graph.op("Div", u, graph.constant(warp.scale))
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", u, u), graph.constant(1.0)))
    size = graph.op("Log", graph.op("Add", graph.op("Abs", u), root))
    return graph.op("Mul", graph.op("Sign", u), size)


def _rank(graph: Graph, x: str, warp: Rank) -> str:
    """First value plus, for each segment, its step times the share of it that lies below x."""
    below = graph.op("Sub", x, graph.constant(warp.knots[:-1]))
    shares = graph.op("Div", below, graph.constant(np.diff(warp.knots)))
    shares = graph.op("Max", shares, graph.constant(0.0))
    shares = graph.op("Min", shares, graph.constant(1.0))
    steps = graph.op("MatMul", shares, graph.constant(np.diff(warp.values)[:, None]))
    return graph.op("Add", steps, graph.constant(warp.values[0]))


_WARPS: dict[type, Callable[[Graph, str, Any], str]] = {
    Log: lambda graph, x, _: graph.op("Log", x),
    Asinh: _asinh,
    Rank: _rank,
}


def _total(
    graph: Graph, values: list[str], matrices: list[NDArray[Any]], constant: NDArray[Any]
) -> str:
    """Features (rows, s) times matrices (s, columns), summed, plus a constant row."""
    products = [
        graph.op("MatMul", value, graph.constant(matrix))
        for value, matrix in zip(values, matrices, strict=True)
    ]
    return graph.op("Add", graph.sum(products), graph.constant(constant))


def _by_term(coef: NDArray[np.float64], sets: list[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Coefficients (targets, s) assigned to their terms, shape (s, terms, targets)."""
    T, s = coef.shape
    spread = np.zeros((s, len(sets), T))
    for k, features in enumerate(sets):
        spread[features, k] = coef[:, features].T
    return spread


def _blank(graph: Graph, value: str, absent: str | None) -> str:
    """Replace the outputs of absent rows by NaN."""
    return value if absent is None else graph.op("Where", absent, graph.constant(np.nan), value)
