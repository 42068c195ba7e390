"""Table encoders as nodes of an ONNX graph."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from harfe.tables.columns import MISSING_TEXTS, number

if TYPE_CHECKING:
    from harfe.files.onnx.graph import Graph
    from harfe.tables.encoder import TableEncoder


def add_encoder(graph: Graph, encoder: TableEncoder) -> tuple[str, str | None]:
    """Add an input for each column, and the nodes that combine them into one matrix.

    Returns
    -------
    X, absent : str, str or None
        Names of the matrix, shape (rows, inputs), and of the mask, shape (rows, 1), of rows with
        missing values; None if missing values are filled in.
    """
    spelled = {text for low in MISSING_TEXTS for text in (low, low.upper(), low.capitalize())}
    missing_texts = sorted({*spelled, "NaN", "None", *encoder.na})
    codes = [code for text in encoder.na if (code := number(text)) is not None]
    codes = [code for code in codes if not np.isnan(code)]
    fills = encoder.missing == "median"
    blocks, gaps = [], []
    for column in encoder.columns:
        category = column.kind == "category"
        value = graph.input(column.name, 1, text=category)
        if category:
            absent = _any_equal(graph, value, missing_texts)
            block = graph.numbers(graph.op("Equal", value, graph.constant([list(column.shown)])))
            fill = [[float(shown == column.fill) for shown in column.shown]]
        else:
            absent = graph.op("IsNaN", value)
            if codes:
                absent = graph.op("Or", absent, _any_equal(graph, value, codes))
            block, fill = value, [[float(column.fill)]]
        if fills:
            block = graph.op("Where", absent, graph.constant(fill), block)
        else:
            gaps.append(absent)
        blocks.append(block)
    X = graph.op("Concat", *blocks, axis=1)
    if fills:
        return X, None
    return X, reduce(lambda left, right: graph.op("Or", left, right), gaps)


def _any_equal(graph: Graph, value: str, candidates: list[Any]) -> str:
    """Add nodes that test which rows of a column, shape (rows, 1), have one of these values."""
    equal = graph.numbers(graph.op("Equal", value, graph.constant([candidates])))
    found = graph.op("MatMul", equal, graph.constant(np.ones((len(candidates), 1))))
    return graph.op("Greater", found, graph.constant(0.5))
