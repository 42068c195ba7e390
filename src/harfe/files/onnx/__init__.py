"""Fitted models as ONNX graphs, which other programs and languages run without harfe."""

from __future__ import annotations

from harfe.files.onnx.export import to_onnx

__all__ = ["to_onnx"]
