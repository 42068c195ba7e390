"""The compiled loops behind the kernel of a law: symmetric polynomials and their gradient.

For rows x, z the loops work on u_j = p_j χ(σ_j (x_j - z_j)), with χ the characteristic function of
the weights, and on e_q(u), the elementary symmetric polynomials. Both directions only add and
multiply numbers of one sign unless the weights are uniform, so nothing cancels at any order.
Features of all inputs have the kernel Π χ, which needs one exponential instead of one an input.
Inputs come transposed, (variables, rows).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe._core.compiling import compiled
from harfe._core.threads import blocks, run_blocks

# Not "reassoc": it would cancel the two parts of ln 2 against each other.
_FLAGS = {"nnan", "ninf", "nsz", "arcp", "contract"}

# Columns a loop handles at a time, the last ones padded: loops of a fixed length run faster, and
# their buffers stay in the caches.
_COLUMNS = 64

# Rows that a thread handles at a time.
_ROWS = 16

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10

# exp(-700), about 1e-304, is the smallest value that the loop below returns.
_SMALLEST = -700.0

# Adding 1.5·2^52 rounds to whole numbers and leaves them in the last bits; a conversion to integers
# would not vectorise without AVX-512.
_ROUND = 6755399441055744.0
_ONE = 1023 << 52  # the bits of 1.0


@compiled(inline="always", fastmath=_FLAGS)
def _exp_reduced(r):  # type: ignore[no-untyped-def]
    """exp(r) for |r| <= ln(2)/2: the closest polynomial of degree 11, error 3e-18.

    Summed in pairs, which do not wait for each other.
    """
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (0.5000000000000019 + r * 0.1666666666666668)
    middle = (0.0416666666664881 + r * 0.008333333333319601) + r2 * (
        0.0013888888952314775 + r * 0.00019841269890047113
    )
    high = (2.4801485482328494e-05 + r * 2.755724091857897e-06) + r2 * (
        2.763263963904103e-07 + r * 2.5110037605963777e-08
    )
    return low + r4 * (middle + r4 * high)


@compiled(fastmath=_FLAGS)
def _exponentials(t, room, bits):  # type: ignore[no-untyped-def]
    """Replace t <= 0 by exp(t). `bits` are those of `room`; both are overwritten."""
    for i in range(len(t)):
        # The sum has no fractional bits, so its last bits are the whole number of halvings.
        room[i] = max(t[i], _SMALLEST) * _LOG2E + _ROUND
        turns = room[i] - _ROUND
        t[i] = (max(t[i], _SMALLEST) - turns * _LN2_HIGH) - turns * _LN2_LOW
    for i in range(len(t)):
        bits[i] = (bits[i] << 52) + _ONE
    for i in range(len(t)):
        t[i] = _exp_reduced(t[i]) * room[i]


@compiled(inline="always", fastmath=_FLAGS)
def _rough(kind, a):  # type: ignore[no-untyped-def]
    """The Matérn function times e^a, and its logarithmic derivative by log a."""
    if kind == 2:
        return 1.0, -a
    if kind == 3:
        return 1.0 + a, -a * a / (1.0 + a)
    third = a * a / 3.0
    return 1.0 + a + third, -third * (1.0 + a) / (1.0 + a + third)


@compiled(fastmath=_FLAGS)
def _factors(kind, XT, i, ZT, start, rates, p, U, V, flat, room, bits):  # type: ignore[no-untyped-def]
    """U = p χ for row i of X and columns of ZT, and V = d log χ / d log rate.

    `kind` is the code of the law of the weights, other than uniform; `flat` is U as one row.
    """
    for j in range(len(p)):
        for k in range(_COLUMNS):
            gap = XT[j, i] - ZT[j, start + k]
            if kind == 0:
                U[j, k] = -rates[j] * gap * gap
                V[j, k] = U[j, k]
            else:
                a = rates[j] * abs(gap)
                U[j, k] = -a
                V[j, k] = _rough(kind, a)[1]
    _exponentials(flat, room, bits)
    for j in range(len(p)):
        for k in range(_COLUMNS):
            if kind == 0:
                U[j, k] *= p[j]
            else:
                U[j, k] *= p[j] * _rough(kind, rates[j] * abs(XT[j, i] - ZT[j, start + k]))[0]


@compiled()
def _uniform_factors(XT, i, ZT, start, rates, p, U):  # type: ignore[no-untyped-def]
    """U = p sin(rate (x - z)) / (rate (x - z)) for row i of X and columns of ZT."""
    for j in range(len(p)):
        for k in range(_COLUMNS):
            a = rates[j] * (XT[j, i] - ZT[j, start + k])
            U[j, k] = p[j] * (math.sin(a) / a) if abs(a) > 1e-9 else p[j]


@compiled(fastmath=_FLAGS)
def _product(kind, XT, i, ZT, start, rates, V, product, room, bits):  # type: ignore[no-untyped-def]
    """Write Π χ over all inputs for row i of X and columns of ZT, and V as in `_factors`."""
    for k in range(_COLUMNS):
        product[k] = 0.0
    for j in range(len(rates)):
        for k in range(_COLUMNS):
            gap = XT[j, i] - ZT[j, start + k]
            if kind == 0:
                V[j, k] = -rates[j] * gap * gap
                product[k] += V[j, k]
            else:
                a = rates[j] * abs(gap)
                V[j, k] = _rough(kind, a)[1]
                product[k] -= a
    _exponentials(product, room, bits)
    if kind > 2:
        for j in range(len(rates)):
            for k in range(_COLUMNS):
                product[k] *= _rough(kind, rates[j] * abs(XT[j, i] - ZT[j, start + k]))[0]


@compiled(nogil=True)
def _product_rows(XT, ZT, rates, kind, variance, first, out, triangle):  # type: ignore[no-untyped-def]
    """out[i, k] = variance Π χ; otherwise as `_kernel_rows`, for weights that are not uniform."""
    V = np.empty((XT.shape[0], _COLUMNS))
    product, room = np.empty(_COLUMNS), np.empty(_COLUMNS)
    bits = room.view(np.int64)
    for i in range(out.shape[0]):
        last = first + i + 1 if triangle else out.shape[1]
        for start in range(0, last, _COLUMNS):
            _product(kind, XT, first + i, ZT, start, rates, V, product, room, bits)
            for k in range(min(_COLUMNS, last - start)):
                out[i, start + k] = variance * product[k]


@compiled(nogil=True, fastmath=True)
def _product_gradient_rows(XT, rates, kind, variance, G, first, last, by_rate, by_variance):  # type: ignore[no-untyped-def]
    """As `_gradient_rows`, for the product of all inputs."""
    d = XT.shape[0]
    V = np.empty((d, _COLUMNS))
    product, room = np.empty(_COLUMNS), np.empty(_COLUMNS)
    bits = room.view(np.int64)
    for i in range(first, last):
        for start in range(0, i + 1, _COLUMNS):
            _product(kind, XT, i, XT, start, rates, V, product, room, bits)
            total = 0.0
            for k in range(_COLUMNS):
                g = 0.0
                if start + k < i:
                    g = 2.0 * G[i, start + k]
                elif start + k == i:
                    g = G[i, i]
                product[k] *= g * variance
                total += product[k]
            by_variance[0] += total
            for j in range(d):
                one = 0.0
                for k in range(_COLUMNS):
                    one += product[k] * V[j, k]
                by_rate[j] += one


@compiled(nogil=True)
def _kernel_rows(XT, ZT, rates, kind, p, eta, first, out, triangle):  # type: ignore[no-untyped-def]
    """out[i, k] = Σ_q eta[q] e_q(u) for rows first + i of X and rows k of Z, which is padded.

    `rates` and `kind` are those of `harfe.features.law_parameters`. With `triangle` X and Z are the
    same rows and only k <= first + i is written.
    """
    d, Q = XT.shape[0], eta.shape[0] - 1
    e = np.empty((Q + 1, _COLUMNS))
    U, V = np.empty((d, _COLUMNS)), np.empty((d, _COLUMNS))
    room = np.empty(d * _COLUMNS)
    flat, bits = U.reshape(-1), room.view(np.int64)
    row = np.empty(_COLUMNS)
    for i in range(out.shape[0]):
        last = first + i + 1 if triangle else out.shape[1]
        for start in range(0, last, _COLUMNS):
            if kind == 1:
                _uniform_factors(XT, first + i, ZT, start, rates, p, U)
            else:
                _factors(kind, XT, first + i, ZT, start, rates, p, U, V, flat, room, bits)
            for q in range(Q + 1):
                for k in range(_COLUMNS):
                    e[q, k] = 1.0 if q == 0 else 0.0
            for j in range(d):
                for q in range(Q, 0, -1):
                    for k in range(_COLUMNS):
                        e[q, k] += U[j, k] * e[q - 1, k]
            for k in range(_COLUMNS):
                row[k] = eta[0]
            for q in range(1, Q + 1):
                for k in range(_COLUMNS):
                    row[k] += eta[q] * e[q, k]
            for k in range(min(_COLUMNS, last - start)):
                out[i, start + k] = row[k]


@compiled(nogil=True, fastmath=True)
def _gradient_rows(XT, rates, kind, p, eta, G, first, last, by_rate, by_p, by_eta):  # type: ignore[no-untyped-def]
    """Gradient of Σ_{ik} G_ik k(x_i, x_k) over rows first .. last of a symmetric G; XT is padded.

    Adds the derivatives with respect to log(rate_j), log(p_j) and log(eta_q).
    Only pairs k <= i are visited, and those below the diagonal count twice: the lower triangle of
    G is enough.
    """
    d, Q = XT.shape[0], eta.shape[0] - 1
    E = np.empty((d + 1, Q + 1, _COLUMNS))
    U, V = np.empty((d, _COLUMNS)), np.empty((d, _COLUMNS))
    room = np.empty(d * _COLUMNS)
    flat, bits = U.reshape(-1), room.view(np.int64)
    adjoint = np.empty((Q + 1, _COLUMNS))
    D = np.empty(_COLUMNS)
    g = np.empty(_COLUMNS)
    for q in range(Q + 1):
        for k in range(_COLUMNS):
            E[0, q, k] = 1.0 if q == 0 else 0.0
    for i in range(first, last):
        for start in range(0, i + 1, _COLUMNS):
            for k in range(_COLUMNS):
                g[k] = 0.0
            for k in range(min(_COLUMNS, i + 1 - start)):
                g[k] = 2.0 * G[i, start + k] if start + k < i else G[i, i]
            _factors(kind, XT, i, XT, start, rates, p, U, V, flat, room, bits)
            for j in range(d):
                for k in range(_COLUMNS):
                    E[j + 1, 0, k] = 1.0
                for q in range(1, Q + 1):
                    for k in range(_COLUMNS):
                        E[j + 1, q, k] = E[j, q, k] + U[j, k] * E[j, q - 1, k]
            for q in range(Q + 1):
                total = 0.0
                for k in range(_COLUMNS):
                    adjoint[q, k] = eta[q]
                    total += g[k] * E[d, q, k]
                by_eta[q] += eta[q] * total
            for j in range(d - 1, -1, -1):
                # D = ∂k/∂u of one variable; then the variable is removed from the adjoints.
                for k in range(_COLUMNS):
                    D[k] = 0.0
                for q in range(1, Q + 1):
                    for k in range(_COLUMNS):
                        D[k] += adjoint[q, k] * E[j, q - 1, k]
                        adjoint[q - 1, k] += U[j, k] * adjoint[q, k]
                one = 0.0
                two = 0.0
                for k in range(_COLUMNS):
                    term = g[k] * U[j, k] * D[k]
                    one += term
                    two += term * V[j, k]
                by_p[j] += one
                by_rate[j] += two


def _padded(XT: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return XT with zeros after its rows, up to a whole number of blocks."""
    d, m = XT.shape
    out = np.zeros((d, -(-m // _COLUMNS) * _COLUMNS))
    out[:, :m] = XT
    return out


@dataclass(frozen=True)
class KernelSum:
    """Σ_q η_q e_q(u), or the product of all inputs, as the loops need it.

    Attributes
    ----------
    rates : array of shape (variables,)
    kind : int
        Code of the law of the weights; see `harfe.features.law_parameters` for both.
    p : array of shape (variables,)
        Inclusion weights; variables of weight 0 are left out.
    eta : array
        Weights of the orders 0, 1, ...; with `full` a single number, that of the product.
    full : bool
        Whether every feature depends on all variables in use.
    """

    rates: NDArray[np.float64]
    kind: int
    p: NDArray[np.float64]
    eta: NDArray[np.float64]
    full: bool = False

    def values(
        self, XT: NDArray[np.float64], ZT: NDArray[np.float64] | None, *, fill: bool = True
    ) -> NDArray[np.float64]:
        """The kernel between columns of XT and of ZT, on all threads.

        For the rows of X with themselves (`ZT` is None) only the lower triangle is computed;
        without `fill` the upper one is zero.
        """
        same = ZT is None
        other = XT if ZT is None else ZT
        # Zeros, not uninitialised: callers may add to entries that nothing reads.
        out = np.zeros((XT.shape[1], other.shape[1]))
        used = self.p > 0
        x, columns = np.ascontiguousarray(XT[used]), _padded(other[used])
        rates, p = self.rates[used], self.p[used]

        def work(rows: slice) -> None:
            where = rows.start, out[rows], same
            if self.full:
                _product_rows(x, columns, rates, self.kind, self.eta[0], *where)
            else:
                _kernel_rows(x, columns, rates, self.kind, p, self.eta, *where)

        # The longest rows of a triangle first, so that threads finish together.
        run_blocks(work, reversed(blocks(len(out), _ROWS)))
        if same and fill:
            upper = np.triu_indices(len(out), 1)
            out[upper] = out.T[upper]
        return out

    def gradient(
        self, XT: NDArray[np.float64], G: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives of Σ G_ik k(x_i, x_k) with respect to log(rate), log(p) and log(eta).

        Weights are not uniform, all p are positive, G is symmetric, and only its lower triangle is
        read. A product has no p: those derivatives are 0.
        """
        columns = _padded(XT)
        parts = blocks(XT.shape[1], _ROWS)
        by_rate, by_p = np.zeros((2, len(parts), len(XT)))
        by_eta = np.zeros((len(parts), len(self.eta)))

        def work(rows: slice) -> None:
            k = rows.start // _ROWS
            part = G, rows.start, rows.stop, by_rate[k]
            if self.full:
                variance = self.eta[0]
                _product_gradient_rows(columns, self.rates, self.kind, variance, *part, by_eta[k])
            else:
                sums = by_p[k], by_eta[k]
                _gradient_rows(columns, self.rates, self.kind, self.p, self.eta, *part, *sums)

        run_blocks(work, reversed(parts))
        return by_rate.sum(axis=0), by_p.sum(axis=0), by_eta.sum(axis=0)
