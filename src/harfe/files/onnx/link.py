"""The way from the sum to the prediction of a model with a link, as nodes of a graph."""

from __future__ import annotations

import numpy as np

from harfe.files.onnx.graph import Graph
from harfe.model.link import Link


def add_link(graph: Graph, total: str, link: Link) -> str:
    """Add the link's mean of a sum of shape (rows, 1)."""
    if link.kind == "log":
        value = graph.op("Exp", _clipped(graph, total, link))
        return graph.op("Mul", value, graph.constant(link.factor))
    shifted = graph.op("Add", total, graph.constant([link.shifts]))
    eta = _clipped(graph, shifted, link)
    above = _unbend(graph, eta, link.power)
    below = _unbend(graph, graph.op("Neg", eta), 2 - link.power)
    places = graph.constant([1], np.int64)
    value = graph.op("ReduceMean", graph.op("Sub", above, below), places, keepdims=1)
    value = graph.op("Mul", value, graph.constant(link.unit))
    return graph.op("Add", value, graph.constant(link.centre))


def _clipped(graph: Graph, eta: str, link: Link) -> str:
    eta = graph.op("Max", eta, graph.constant(link.lower))
    return graph.op("Min", eta, graph.constant(link.upper))


def _unbend(graph: Graph, eta: str, power: float) -> str:
    """Inverse of Yeo-Johnson on one side of the centre; 0 on the other."""
    one = graph.constant(1.0)
    exponent = graph.op("Max", eta, graph.constant(0.0))
    if power:
        grown = graph.op("Add", one, graph.op("Mul", exponent, graph.constant(power)))
        exponent = graph.op("Div", graph.op("Log", grown), graph.constant(power))
    return graph.op("Sub", graph.op("Exp", exponent), one)
