"""Inputs in the units of the law: clipped, warped, then (x - centre) / spread.

Units are affine maps, which can be folded into weights and biases: the fitted function has none.
Bounds and warps cannot be folded in; the fitted function stores them as an `InputMap`.
"""

from harfe.features.units.affine import INPUT_SCALES, InputUnits, measure_units, varies
from harfe.features.units.input_map import INPUT_WARPS, InputMap, find_map
from harfe.features.units.warps import Asinh, Log, Rank, Warp

__all__ = [
    "INPUT_SCALES",
    "INPUT_WARPS",
    "Asinh",
    "InputMap",
    "InputUnits",
    "Log",
    "Rank",
    "Warp",
    "find_map",
    "measure_units",
    "varies",
]
