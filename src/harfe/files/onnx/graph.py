"""Build ONNX graphs from nodes that are referred to by name."""

from __future__ import annotations

from functools import reduce
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# The first opset with Equal for text; runtimes have supported it since 2023.
_OPSET, _IR_VERSION = 19, 9

#: Suffixes of the names of outputs: for a real model, and for the parts of a complex one.
PARTS = ("", "_real", "_imag")

# Names of outputs, and the prefix of everything that is neither input nor output.
_OUTPUTS = tuple(f"{name}{part}" for name in ("prediction", "terms") for part in PARTS)
_OWN = "harfe/"


class Graph:
    """Collects nodes; values are referred to by name."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                'to_onnx needs the package onnx; pip install "harfe[onnx]"'
            ) from error
        self._onnx = onnx
        self.dtype = dtype
        self.type = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, width: int, text: bool = False) -> str:
        """Add an input of shape (rows, width), under this name unless it is not available."""
        taken = (*_OUTPUTS, *(known.name for known in self._inputs))
        while not name or name.startswith(_OWN) or name in taken:
            name = f"column {name}"
        kind = self._onnx.TensorProto.STRING if text else self.type
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, kind, ["rows", width]))
        return name

    def constant(self, values: ArrayLike | list[str], dtype: Any = None) -> str:
        """Add numbers, in the type of the graph by default, or text."""
        name = f"{_OWN}constant {len(self._constants)}"
        array = np.asarray(values)
        if array.dtype.kind in "UO":
            tensor = self._onnx.helper.make_tensor(
                name,
                self._onnx.TensorProto.STRING,
                array.shape,
                [text.encode() for text in array.ravel().tolist()],
            )
        else:
            array = np.ascontiguousarray(array.astype(self.dtype if dtype is None else dtype))
            tensor = self._onnx.numpy_helper.from_array(array, name)
        self._constants.append(tensor)
        return name

    def op(self, operator: str, *values: str, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        name = f"{_OWN}{operator} {len(self._nodes)}"
        self._nodes.append(
            self._onnx.helper.make_node(operator, list(values), [name], **attributes)
        )
        return name

    def numbers(self, truths: str) -> str:
        """Convert truth values to the numbers 0 and 1."""
        return self.op("Cast", truths, to=self.type)

    def sum(self, values: list[str]) -> str:
        """Add up values from left to right."""
        return reduce(lambda left, right: self.op("Add", left, right), values)

    def output(self, name: str, value: str, shape: tuple[int, ...]) -> None:
        """Make a value an output of shape (rows, *shape)."""
        sizes = self.constant([-1, *shape], np.int64)
        self._nodes.append(self._onnx.helper.make_node("Reshape", [value, sizes], [name]))
        info = self._onnx.helper.make_tensor_value_info(name, self.type, ["rows", *shape])
        self._outputs.append(info)

    def model(self, metadata: dict[str, str]) -> Any:
        """Return a checked model of everything that was collected."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "harfe", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="harfe",
            producer_version=version("harfe"),
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
        )
        helper.set_model_props(model, metadata)
        self._onnx.checker.check_model(model, full_check=True)
        return model
