"""The paper's data: its functions, order-q additive functions, and its eleven real tables.

    y_k = f(x_k) + e_k,   k = 1, ..., n

`make_function` draws (x, y) for a function of the paper's synthetic tables, `make_additive` for a
random f of Definition 2.1, and `load_real` reads a real table as the paper prepared it. All three
return a `sklearn.utils.Bunch`.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from sklearn.utils import Bunch

__all__ = [
    "FUNCTIONS",
    "AdditiveFunction",
    "FunctionSpec",
    "friedman1",
    "friedman2",
    "friedman3",
    "inverse_norm",
    "laplace_sum",
    "list_real",
    "load_real",
    "make_additive",
    "make_function",
    "norm",
    "ratio",
]

FloatArray: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = int | np.random.RandomState | None


# --- The functions of the synthetic tables -------------------------------------------------------


def inverse_norm(X: ArrayLike) -> FloatArray:
    """1 / sqrt(1 + ‖x‖₂²) for every row x of X (Table 1, first function)."""
    return 1 / norm(X)


def norm(X: ArrayLike) -> FloatArray:
    """sqrt(1 + ‖x‖₂²) for every row x of X (Table 1, second function)."""
    return np.sqrt(1 + np.sum(_table(X, 1, "norm") ** 2, axis=1))


def ratio(X: ArrayLike) -> FloatArray:
    """x₁x₂ / (1 + x₃⁶) for every row x of X; further inputs play no part (Table 1, third)."""
    x1, x2, x3 = _table(X, 3, "ratio").T[:3]
    return x1 * x2 / (1 + x3**6)


def laplace_sum(X: ArrayLike) -> FloatArray:
    """Σᵢ exp(-|xᵢ|) for every row x of X (Table 1, fourth function)."""
    return np.sum(np.exp(-np.abs(_table(X, 1, "laplace_sum"))), axis=1)


def friedman1(X: ArrayLike) -> FloatArray:
    """10 sin(π x₁x₂) + 20 (x₃ - 1/2)² + 10 x₄ + 5 x₅ for every row x of X in [0, 1]^d.

    The paper's f₁ for d = 10 and its g for d = 20: inputs from the sixth on play no part.
    """
    x1, x2, x3, x4, x5 = _table(X, 5, "friedman1").T[:5]
    return 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5


def friedman2(X: ArrayLike, *, as_printed: bool = False) -> FloatArray:
    """sqrt( (100x₁)² + ( x₃ω - 1/(ω(10x₄ + 1)) )² ),  ω = 520πx₂ + 40π,  rows x of X in [0, 1]⁴.

    This is the usual definition. The paper prints 520πx₂ + π for the ω in the denominator, but 40π
    in f₃: ``as_printed=True`` takes it at its word. The values differ by less than 0.32, the noise
    has a deviation of 125. Inputs from the fifth on play no part.
    """
    x1, x2, x3, x4 = _table(X, 4, "friedman2").T[:4]
    offset = np.pi if as_printed else 40 * np.pi
    return np.hypot(100 * x1, _reactance(x2, x3, x4, offset))


def friedman3(X: ArrayLike) -> FloatArray:
    """arctan( (x₃ω - 1/(ω(10x₄ + 1))) / (100x₁) ),  ω = 520πx₂ + 40π,  rows x of X in [0, 1]⁴.

    At x₁ = 0 the value is the limit ±π/2 from the right. Inputs from the fifth on play no part.
    """
    x1, x2, x3, x4 = _table(X, 4, "friedman3").T[:4]
    # arctan2 knows the limit at x₁ = 0; carrying the sign keeps it the arctan for x₁ < 0 as well.
    sign = np.where(x1 < 0, -1.0, 1.0)
    return np.arctan2(sign * _reactance(x2, x3, x4, 40 * np.pi), np.abs(100 * x1))


def _reactance(x2: FloatArray, x3: FloatArray, x4: FloatArray, offset: float) -> FloatArray:
    """x₃ω - 1/((520πx₂ + offset)(10x₄ + 1)), the part f₂ and f₃ share."""
    return x3 * (520 * np.pi * x2 + 40 * np.pi) - 1 / ((520 * np.pi * x2 + offset) * (10 * x4 + 1))


@dataclass(frozen=True)
class FunctionSpec:
    """What the paper fixes about one function."""

    evaluate: Callable[[ArrayLike], FloatArray]  # rows of X to noise-free values
    formula: str
    n_features: int  # the dimension d
    box: tuple[float, float]  # the inputs are independent and uniform between these two
    noise: float  # standard deviation of the Gaussian noise


_SYMMETRIC, _UNIT = (-1.0, 1.0), (0.0, 1.0)
_F1 = "10 sin(π x1 x2) + 20 (x3 - 1/2)² + 10 x4 + 5 x5"
_F2 = "sqrt((100 x1)² + (x3 (520π x2 + 40π) - 1/((520π x2 + {}π)(10 x4 + 1)))²)"
_F3 = "arctan((x3 (520π x2 + 40π) - 1/((520π x2 + 40π)(10 x4 + 1))) / (100 x1))"

#: Every function of the paper's synthetic examples by name.
FUNCTIONS: dict[str, FunctionSpec] = {
    "inverse_norm": FunctionSpec(inverse_norm, "1 / sqrt(1 + |x|²)", 5, _SYMMETRIC, 0.0),
    "norm": FunctionSpec(norm, "sqrt(1 + |x|²)", 5, _SYMMETRIC, 0.0),
    "ratio": FunctionSpec(ratio, "x1 x2 / (1 + x3⁶)", 5, _SYMMETRIC, 0.0),
    "laplace_sum": FunctionSpec(laplace_sum, "Σ exp(-|xi|)", 100, _SYMMETRIC, 0.0),
    "friedman1": FunctionSpec(friedman1, _F1, 10, _UNIT, 1.0),
    "friedman2": FunctionSpec(friedman2, _F2.format("40"), 4, _UNIT, 125.0),
    "friedman2_as_printed": FunctionSpec(
        partial(friedman2, as_printed=True), _F2.format(""), 4, _UNIT, 125.0
    ),
    "friedman3": FunctionSpec(friedman3, _F3, 4, _UNIT, 0.1),
    "friedman_g": FunctionSpec(friedman1, _F1, 20, _UNIT, 1.0),
}


def make_function(
    name: str,
    n_samples: int = 500,
    *,
    noise: float | None = None,
    random_state: RandomState = None,
    n_features: int | None = None,
) -> Bunch:
    """Draw y = f(x) + σ·N(0, 1) for a function f of the paper, x uniform on its box.

    Parameters
    ----------
    name : str
        A key of `FUNCTIONS`: "inverse_norm", "norm", "ratio", "laplace_sum" (Table 1),
        "friedman1", "friedman2", "friedman2_as_printed", "friedman3", "friedman_g" (the g of 20
        inputs of which five matter).
    n_samples : int, default=500
        Number of rows.
    noise : float, optional
        Standard deviation σ. None takes the paper's: 0 for Table 1; 1, 125 and 0.1 for the three
        Friedman functions; 1 for g, where the paper gives none.
    random_state : int, RandomState or None
        Inputs and noise come from separate streams: with an equal seed, X does not depend on
        `noise`, and fewer rows are the first of many.
    n_features : int, optional
        Dimension d; None takes the paper's.

    Returns
    -------
    Bunch
        `X` (n, d), `y` (n,), `y_clean` = f(X), `feature_names` x1..xd, `noise` = σ, `DESCR`.

    Examples
    --------
    >>> data = make_function("friedman1", 200, random_state=0)
    >>> data.X.shape, data.noise
    ((200, 10), 1.0)
    """
    if name not in FUNCTIONS:
        raise _unknown_name(name, FUNCTIONS)
    spec = FUNCTIONS[name]
    n_rows = _whole("n_samples", n_samples)
    d = spec.n_features if n_features is None else _whole("n_features", n_features)
    deviation = spec.noise if noise is None else _noise_level(noise)
    input_stream, noise_stream = _streams(random_state, 2)
    X = input_stream.uniform(*spec.box, size=(n_rows, d))
    y_clean = spec.evaluate(X)
    y = y_clean + deviation * noise_stream.standard_normal(n_rows)
    low, high = spec.box
    description = (
        f"{name}: f(x) = {spec.formula}, x uniform on [{low:g}, {high:g}]^{d}, "
        f"Gaussian noise of standard deviation {deviation:g}."
    )
    names = [f"x{j + 1}" for j in range(d)]
    return _bunch(
        X=X, y=y, y_clean=y_clean, feature_names=names, noise=deviation, DESCR=description
    )


# --- Order-q additive functions ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AdditiveFunction:
    """f(x) = (1/K) Σⱼ gⱼ(x|Sⱼ), an order-q additive function with K terms (Definition 2.1).

    Each term is a short sum of plane waves in its own q variables,
    gⱼ(z) = Σₗ aⱼₗ φ(⟨ωⱼₗ, z⟩ + bⱼₗ), with φ = sin, or φ = exp(i·) if f is complex.
    """

    n_features: int
    index_sets: tuple[tuple[int, ...], ...]  # the Sⱼ, sorted, counted from 0
    frequencies: FloatArray  # ω, shape (K, waves, q)
    phases: FloatArray  # b, shape (K, waves)
    amplitudes: FloatArray  # a, shape (K, waves)
    complex_valued: bool

    def __call__(self, X: ArrayLike) -> NDArray[Any]:
        """Noise-free values f(x) for every row x of X, shape (n, d)."""
        rows = _table(X, self.n_features, "this additive function")
        if rows.shape[1] > self.n_features:
            raise ValueError(f"X has {rows.shape[1]} columns: pass exactly {self.n_features}.")
        total = np.zeros(len(rows), dtype=np.complex128 if self.complex_valued else np.float64)
        terms = zip(self.index_sets, self.frequencies, self.phases, self.amplitudes, strict=True)
        for index_set, omega, phase, amplitude in terms:
            angle = rows[:, index_set] @ omega.T + phase
            total += (np.exp(1j * angle) if self.complex_valued else np.sin(angle)) @ amplitude
        return total / len(self.index_sets)


def make_additive(
    n_samples: int,
    n_features: int,
    *,
    order: int,
    n_terms: int,
    noise: float = 0.0,
    noise_kind: Literal["gaussian", "bounded"] = "gaussian",
    complex_valued: bool = False,
    random_state: RandomState = None,
) -> Bunch:
    """Draw y = f(x) + e for a random f(x) = (1/K) Σⱼ gⱼ(x|Sⱼ) of order q, x uniform on [-1, 1]^d.

    The K index sets are drawn uniformly among all C(d, q) without repetition. Every gⱼ depends on
    all of its q variables and has a root mean square of about 1, so that of f is about 1/√K.

    Parameters
    ----------
    n_samples, n_features : int
        Number of rows, and the dimension d.
    order, n_terms : int
        The size q <= d of every index set, and the number of terms K <= C(d, q).
    noise : float, default=0.0
        "gaussian": the standard deviation sqrt(E|e|²). "bounded": the E of |e| <= E.
    noise_kind : {"gaussian", "bounded"}, default="gaussian"
        Bounded noise is uniform on [-E, E], or on the disc of radius E if complex. Complex Gaussian
        noise has independent real and imaginary parts of equal size.
    complex_valued : bool, default=False
        Whether f and the noise are complex.
    random_state : int, RandomState or None
        Index sets, terms, inputs and noise come from separate streams: with an equal seed the
        function does not depend on `n_samples`, `noise` or `noise_kind`.

    Returns
    -------
    Bunch
        `X`, `y`, `y_clean`, `index_sets` (the truth: sorted tuples counted from 0, in lexical
        order), `noise`, `function` (an `AdditiveFunction`, for y_clean at new X),
        `feature_names`, `DESCR`.

    Examples
    --------
    >>> data = make_additive(50, 10, order=2, n_terms=3, random_state=0)
    >>> data.index_sets
    [(1, 9), (3, 6), (7, 9)]
    >>> bool((data.function(data.X) == data.y).all())
    True
    """
    n_rows, d = _whole("n_samples", n_samples), _whole("n_features", n_features)
    q, n_sets = _whole("order", order), _whole("n_terms", n_terms)
    if q > d:
        raise ValueError(f"order={q} exceeds n_features={d}: type an order from 1 to {d}.")
    if n_sets > math.comb(d, q):
        raise ValueError(
            f"n_terms={n_sets} exceeds the {math.comb(d, q)} sets of order={q} among "
            f"n_features={d}: type n_terms from 1 to {math.comb(d, q)}."
        )
    if noise_kind not in ("gaussian", "bounded"):
        raise ValueError(f"noise_kind={noise_kind!r}: type 'gaussian' or 'bounded'.")
    level = _noise_level(noise)
    set_stream, term_stream, input_stream, noise_stream = _streams(random_state, 4)
    index_sets = _draw_index_sets(d, q, n_sets, set_stream)
    function = AdditiveFunction(
        d, index_sets, *_draw_waves(n_sets, q, complex_valued, term_stream), complex_valued
    )
    X = input_stream.uniform(-1, 1, size=(n_rows, d))
    y_clean = function(X)
    y = y_clean + level * _unit_noise(noise_stream, n_rows, noise_kind, complex_valued)
    description = (
        f"Order-{q} additive {'complex' if complex_valued else 'real'} function with {n_sets} "
        f"terms, x uniform on [-1, 1]^{d}, {noise_kind} noise of level {level:g}."
    )
    return _bunch(
        X=X,
        y=y,
        y_clean=y_clean,
        index_sets=list(index_sets),
        noise=level,
        function=function,
        feature_names=[f"x{j + 1}" for j in range(d)],
        DESCR=description,
    )


def _draw_waves(
    n_terms: int, q: int, complex_valued: bool, stream: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Frequencies, phases and amplitudes of three waves per term, of mean square 1 together."""
    # Frequencies and amplitudes stay away from 0: every variable of a set must really matter.
    size = (n_terms, 3, q)
    frequencies = stream.uniform(1, 3, size) * stream.choice([-1.0, 1.0], size)
    phases = stream.uniform(0, 2 * np.pi, size[:2])
    amplitudes = stream.uniform(0.5, 1.5, size[:2])
    mean_square_of_wave = 1.0 if complex_valued else 0.5
    amplitudes /= np.sqrt(mean_square_of_wave * np.sum(amplitudes**2, axis=1, keepdims=True))
    return frequencies, phases, amplitudes


def _draw_index_sets(
    d: int, q: int, count: int, stream: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """`count` distinct q-subsets of range(d), uniformly, in about 2·count steps at the most."""
    if 2 * count > math.comb(d, q):
        subsets = list(itertools.combinations(range(d), q))
        chosen = {subsets[i] for i in stream.choice(len(subsets), count, replace=False)}
    else:
        # At least half of all sets are free at every draw, so that few draws repeat one.
        chosen = set()
        while len(chosen) < count:
            chosen.add(tuple(sorted(stream.choice(d, q, replace=False).tolist())))
    return tuple(sorted(chosen))


def _unit_noise(
    stream: np.random.Generator, n_rows: int, kind: str, complex_valued: bool
) -> NDArray[Any]:
    """Noise with E|e|² = 1 ("gaussian") or |e| <= 1 ("bounded")."""
    if kind == "gaussian" and complex_valued:
        real, imaginary = stream.standard_normal((n_rows, 2)).T / np.sqrt(2)
        return real + 1j * imaginary
    if kind == "gaussian":
        return stream.standard_normal(n_rows)
    if complex_valued:
        area, turn = stream.uniform(size=(n_rows, 2)).T
        return np.sqrt(area) * np.exp(2j * np.pi * turn)
    return stream.uniform(-1, 1, size=n_rows)


# --- The real tables -----------------------------------------------------------------------------

#: Every real table by name, with where it comes from; the last two are no part of the experiment.
_ORIGINS = {
    "propulsion": "UCI, Condition Based Maintenance of Naval Propulsion Plants",
    "galaxy": "lrgReg.mat of the SALSA authors",
    "skillcraft": "UCI, SkillCraft1 Master Table",
    "airfoil": "UCI, Airfoil Self-Noise",
    "forestfire": "UCI, Forest Fires",
    "housing": "Boston housing, StatLib",
    "music": "UCI, YearPredictionMSD, 2000 rows chosen by the SALSA authors",
    "insulin": "epidata.mat of the SALSA authors",
    "speech": "UCI, Parkinson Speech with Multiple Types of Sound Recordings",
    "telemonitor": "UCI, Parkinsons Telemonitoring, the rows with sex = 0",
    "ccpp": "UCI, Combined Cycle Power Plant",
    "telemonitor_sex1": "UCI, Parkinsons Telemonitoring, the rows with sex = 1",
    "ccpp_rest": "UCI, Combined Cycle Power Plant, the rows that the experiment leaves out",
}
_TARGET_TRANSFORMS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "propulsion": np.log,
    "galaxy": lambda y: y / y.std(ddof=1),
}
_INPUT_TRANSFORMS: dict[str, tuple[str, Callable[[FloatArray], FloatArray]]] = {
    "forestfire": ("area", np.log1p)
}


def list_real() -> tuple[str, ...]:
    """Names that `load_real` knows: the paper's eleven tables, then two variants."""
    return tuple(_ORIGINS)


def load_real(
    name: str,
    split: Literal["paper"] | int = "paper",
    noise_seed: int = 0,
    data_home: str | os.PathLike[str] | None = None,
) -> Bunch:
    """(x - mean) / sd with the numbers of the training rows: a real table as the paper prepared it.

    In this order: logarithms (target of propulsion, input `area` of forestfire as log(area + 1));
    choice of rows; standardisation of inputs and target by mean and standard deviation (ddof = 1)
    of the training rows, where an input that is constant on them becomes 0 in both parts; noise
    inputs (36 for airfoil, 55 for ccpp), independent N(0, 1) and not standardised again. Galaxy is
    not standardised; its target is divided by the standard deviation of all 4000 values.

    Parameters
    ----------
    name : str
        One of `list_real()`.
    split : "paper" or int, default="paper"
        "paper" takes the rows of splits.json. A seed takes, of
        ``p = numpy.random.default_rng(seed).permutation(n)``, the first rows ``p[:m]`` for training
        and the next for the test, as many as the paper has (galaxy, too, is shuffled then). The
        paper has no rows for "ccpp_rest": a seed splits it into halves.
    noise_seed : int, default=0
        Seed of the noise inputs; they do not depend on `split`.
    data_home : path, optional
        Folder with datasets.json (the manifest), splits.json and the CSV files. None reads the
        environment variable HARFE_DATA.

    Returns
    -------
    Bunch
        `X_train`, `y_train`, `X_test`, `y_test`, `train_rows`, `test_rows` (row numbers in the
        file), `feature_names` (noise inputs are noise_1, noise_2, ...), `target_name`, `DESCR`,
        `paper` (the paper's N, s, m_lambda, q, ...) and `paper_mse` (by method); the last two are
        empty for the variants "telemonitor_sex1" and "ccpp_rest".

    Raises
    ------
    FileNotFoundError
        If the data are not there; the message says how to get them.
    ValueError
        If an argument is wrong, or a file is damaged: its SHA-256 is not the manifest's.
    """
    if name not in _ORIGINS:
        raise _unknown_name(name, _ORIGINS)
    if split != "paper":
        _whole("split", split, 0, " or 'paper'")
    _whole("noise_seed", noise_seed, 0)
    home = _data_home(data_home, name)
    manifest = _read_json(home / "datasets.json", name)
    entry = {**manifest["datasets"], **manifest["variants"]}.get(name)
    if entry is None:
        raise _missing(f"The manifest in {str(home)!r} does not describe {name!r}.", name)
    table = _read_table(home / entry["file"], entry["sha256"], name)
    X, y = table[:, :-1], table[:, -1]
    columns: list[str] = list(entry["input_columns"])
    if name in _INPUT_TRANSFORMS:
        column, transform = _INPUT_TRANSFORMS[name]
        X[:, columns.index(column)] = transform(X[:, columns.index(column)])
    if name in _TARGET_TRANSFORMS:
        y = _TARGET_TRANSFORMS[name](y)

    train, test = _split_rows(name, split, len(table), _read_json(home / "splits.json", name))
    X_train, X_test, y_train, y_test = X[train], X[test], y[train], y[test]
    if entry.get("normalise", True):
        X_train, X_test = _standardise(X_train, X_test)
        y_train, y_test = _standardise(y_train, y_test)

    n_noise = entry.get("extra_noise_dims", 0)
    for_train, for_test = np.random.SeedSequence(noise_seed).spawn(2)
    return _bunch(
        X_train=_append_noise(X_train, n_noise, for_train),
        y_train=y_train,
        X_test=_append_noise(X_test, n_noise, for_test),
        y_test=y_test,
        train_rows=train,
        test_rows=test,
        feature_names=columns + [f"noise_{j}" for j in range(1, n_noise + 1)],
        target_name=entry["target_column"],
        DESCR=_describe(name, entry, split),
        paper=dict(entry.get("paper", {})),
        paper_mse=dict(entry.get("paper_mse", {})),
    )


def _data_home(data_home: str | os.PathLike[str] | None, name: str) -> Path:
    if data_home is None and not os.environ.get("HARFE_DATA"):
        raise _missing("HARFE_DATA is not set.", name)
    home = Path(os.environ["HARFE_DATA"] if data_home is None else data_home).expanduser()
    if not home.is_dir():
        raise _missing(f"There is no folder {str(home)!r}.", name)
    return home


def _missing(what: str, name: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"{what} The real data do not come with harfe: set the environment variable HARFE_DATA (or "
        "pass data_home=...) to a folder that holds datasets.json (the manifest), splits.json (the "
        f"paper's rows) and the CSV files that the manifest describes. Origin of {name!r}: "
        f"{_ORIGINS[name]}; the form that the paper used is in experiments/datasets of "
        "https://github.com/kirthevasank/salsa."
    )


def _read_bytes(path: Path, name: str) -> bytes:
    if not path.is_file():
        raise _missing(f"There is no file {str(path)!r}.", name)
    return path.read_bytes()


def _read_json(path: Path, name: str) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(_read_bytes(path, name))
    except ValueError as error:
        raise ValueError(f"The file {str(path)!r} is damaged: {error}. Copy it again.") from error
    return content


def _read_table(path: Path, sha256: str, name: str) -> FloatArray:
    raw = _read_bytes(path, name)
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise ValueError(
            f"The file {str(path)!r} is damaged: its SHA-256 is {found}, the manifest says "
            f"{sha256}. Copy the file again."
        )
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return np.loadtxt(io.BytesIO(text), delimiter=",", skiprows=1)


def _split_rows(
    name: str, split: Literal["paper"] | int, n_rows: int, paper_rows: dict[str, Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if split == "paper":
        if name not in paper_rows:
            raise ValueError(
                f"split='paper': the paper has no rows for {name!r}. Type a seed, e.g. split=0."
            )
        rows = paper_rows[name]
        return np.asarray(rows["train"], dtype=np.intp), np.asarray(rows["test"], dtype=np.intp)
    n_train, n_test = n_rows // 2, n_rows - n_rows // 2
    if name in paper_rows:
        n_train, n_test = len(paper_rows[name]["train"]), len(paper_rows[name]["test"])
    shuffled = np.random.default_rng(split).permutation(n_rows)
    return shuffled[:n_train], shuffled[n_train : n_train + n_test]


def _standardise(train: FloatArray, test: FloatArray) -> tuple[FloatArray, FloatArray]:
    # The range tells a constant; rounding of its mean gives it a deviation of 2e-16, not 0.
    constant = np.ptp(train, axis=0) == 0
    mean, scale = train.mean(axis=0), np.where(constant, np.inf, train.std(axis=0, ddof=1))
    return (train - mean) / scale, (test - mean) / scale


def _append_noise(X: FloatArray, n_columns: int, seed: np.random.SeedSequence) -> FloatArray:
    return np.hstack([X, np.random.default_rng(seed).standard_normal((len(X), n_columns))])


def _describe(name: str, entry: dict[str, Any], split: Literal["paper"] | int) -> str:
    notes = [entry["note"]] if "note" in entry else entry["remarks"]
    head = f"{name}: {entry['rows']} rows, target {entry['target_column']}, split {split!r}."
    origin = f"Origin: {entry.get('origin', _ORIGINS[name])}."
    return "\n".join([head, origin, *(f"- {note}" for note in notes)])


# --- Shared by all -------------------------------------------------------------------------------


def _table(X: ArrayLike, least: int, reader: str) -> FloatArray:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < least:
        raise ValueError(
            f"X has shape {rows.shape}: {reader} needs rows of at least {least} columns; "
            f"pass an array of shape (n, d) with d = n_features >= {least}."
        )
    return rows


def _whole(argument: str, value: int, least: int = 1, alternative: str = "") -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{argument}={value!r}: type a whole number of at least {least}{alternative}."
        )
    return int(value)


def _noise_level(noise: float) -> float:
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise={noise!r}: type a finite number of at least 0, e.g. noise=0.1.")
    return float(noise)


def _unknown_name(name: str, known: Iterable[str]) -> ValueError:
    nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)[0]
    return ValueError(f"name={name!r} is unknown: type {nearest!r}, or one of {', '.join(known)}.")


def _streams(random_state: RandomState, count: int) -> list[np.random.Generator]:
    from sklearn.utils import check_random_state

    entropy = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return [np.random.default_rng(s) for s in np.random.SeedSequence(entropy.tolist()).spawn(count)]


def _bunch(**fields: Any) -> Bunch:
    from sklearn.utils import Bunch

    return Bunch(**fields)
