"""The table of activations: every φ with all of its parts, the only place that lists them.

Nothing heavy is imported here, because the command line lists the names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Activation:
    """An activation φ(z) with all of its parts.

    The last three fields say how φ becomes an ONNX graph, and each row has exactly one of them:
    waves and logistic curves are written in a form that loses fewer digits than their own operator
    (`harfe.files.onnx.function`).

    Attributes
    ----------
    noun : str
        Name of a feature in reports; an "s" makes the plural.
    code : int or None
        Its branch in `harfe.features.kernels`; None for exp(i·), the only complex activation, whose
        real and imaginary parts are cos and sin.
    derivative : tuple of (str, complex)
        A name in `CODES` (or "exp") and the factor that turns it into φ'.
    latex : str
        Formula, with %s in place of z.
    sympy : callable
        Returns the expression, given the module sympy and z.
    script : tuple of str
        φ(z) as JavaScript; the real and the imaginary part if φ is complex.
    turn : complex
        κ of a wave φ(z) = Re κe^{iz} (of the complex wave κe^{iz}), for which explanations and
        kernels have closed forms; 0 for all others.
    logistic : tuple of float or None
        Lower limit, upper limit and steepness k of φ(z) = lower + (upper - lower)/(1 + e^{-kz}).
    onnx : callable or None
        Adds the nodes of φ to a `harfe.files.onnx.graph.Graph`, given the name of z, and returns
        the name of the result.
    """

    noun: str
    code: int | None
    derivative: tuple[str, complex]
    latex: str
    sympy: Callable[[Any, Any], Any]
    script: tuple[str, ...]
    turn: complex = 0
    logistic: tuple[float, float, float] | None = None
    onnx: Callable[[Any, str], str] | None = None

    def __post_init__(self) -> None:
        if (self.turn != 0) + (self.logistic is not None) + (self.onnx is not None) != 1:
            raise TypeError(f"{self.noun}: give exactly one of turn, logistic and onnx")

    @property
    def is_complex(self) -> bool:
        """Whether φ has complex values."""
        return self.code is None

    @property
    def is_wave(self) -> bool:
        """Whether φ is a sine, up to its phase, and so has closed forms."""
        return self.turn != 0


ACTIVATIONS = {
    "sin": Activation(
        noun="sine",
        code=0,
        derivative=("cos", 1),
        latex=r"\sin\left(%s\right)",
        sympy=lambda sympy, z: sympy.sin(z),
        script=("Math.sin(z)",),
        turn=-1j,
    ),
    "cos": Activation(
        noun="cosine",
        code=1,
        derivative=("sin", -1),
        latex=r"\cos\left(%s\right)",
        sympy=lambda sympy, z: sympy.cos(z),
        script=("Math.cos(z)",),
        turn=1.0,
    ),
    "tanh": Activation(
        noun="tanh feature",
        code=2,
        derivative=("tanh_slope", 1),
        latex=r"\tanh\left(%s\right)",
        sympy=lambda sympy, z: sympy.tanh(z),
        script=("Math.tanh(z)",),
        logistic=(-1.0, 1.0, 2.0),
    ),
    "sigmoid": Activation(
        noun="sigmoid feature",
        code=3,
        derivative=("sigmoid_slope", 1),
        latex=r"\operatorname{sigmoid}\left(%s\right)",
        # Unlike 1/(1 + exp(-z)) it does not overflow.
        sympy=lambda sympy, z: (1 + sympy.tanh(z / 2)) / 2,
        script=("0.5 * (1 + Math.tanh(0.5 * z))",),
        logistic=(0.0, 1.0, 1.0),
    ),
    "relu": Activation(
        noun="relu feature",
        code=4,
        derivative=("step", 1),
        latex=r"\max\left(0, %s\right)",
        sympy=lambda sympy, z: sympy.Max(0, z),
        script=("Math.max(z, 0)",),
        onnx=lambda graph, z: graph.op("Relu", z),
    ),
    "exp": Activation(
        noun="wave",
        code=None,
        derivative=("exp", 1j),
        latex=r"e^{i\left(%s\right)}",
        sympy=lambda sympy, z: sympy.exp(sympy.I * z),
        script=("Math.cos(z)", "Math.sin(z)"),
        turn=1.0,
    ),
}

#: Branches of `harfe.features.kernels` by name: real activations, then functions that occur only as
#: derivatives.
CODES = {name: row.code for name, row in ACTIVATIONS.items() if row.code is not None} | {
    "tanh_slope": 5,
    "sigmoid_slope": 6,
    "step": 7,
}
