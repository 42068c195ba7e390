"""Theorem 3.1 where it applies: error per round, contraction, phase transition, vacuous bounds.

Complex exponential features of all variables, Gaussian rows and weights, a planted s-sparse c:

1. error per round of the pursuit with s and 2s features, with and without noise, next to the
   bound, and the measured contraction next to β, where δ_6s is known exactly;
2. share of planted vectors recovered from N = 400 features, over rows m and sparsity s;
3. what the conditions require at common sizes, and the bounds in terms of f, assuming C₁ = C₂ = 1
   (their values are unknown);
4. the effect of λ on β, the bound and the error.

The figure and its numbers are written to docs/figures/theory.png and theory.csv.

    python benchmarks/theory.py [--draws 20] [--quick] [--folder docs/figures]
"""

from __future__ import annotations

import argparse
import csv
import time
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from harfe import SparseRandomFeatures
from harfe._core.table import Table
from harfe.solvers.homes import StoredProblem
from harfe.solvers.pursuit import hard_ridge_pursuit
from harfe.theory import (
    best_terms_distance,
    coefficient_bound,
    contraction,
    convergence_conditions,
    feature_radius,
    function_bound,
    gaussian_norm,
    isometry_constant,
    printed_feature_radius,
    ridge_effects,
)

D, SIGMA, NOISE = 20, 2.0, 0.01
# Errors below this are rounding errors.
FLOOR = 1e-12
ROUNDS = 30
# An assumption: nobody has published the constants of Theorem A.1.
ASSUMED = {"C1": 1.0, "C2": 1.0}


def features(rng: np.random.Generator, m: int, N: int) -> np.ndarray:
    """exp(i<x, ω>) for m rows from N(0, I) and N weights from N(0, σ²I)."""
    law = {"order": D, "activation": "exp", "weights": "normal", "scale": SIGMA, "bias": "none"}
    seed = int(rng.integers(2**31))
    transformer = SparseRandomFeatures(N, random_state=seed, **law)
    return transformer.fit_transform(rng.normal(size=(m, D)))


def planted(rng: np.random.Generator, N: int, s: int, decay: float = 1.0) -> np.ndarray:
    """Unit vector with s entries at random positions and phases, of size decay^k or normal."""
    c = np.zeros(N, complex)
    sizes = decay ** np.arange(s) if decay < 1 else np.abs(rng.normal(size=(s, 2)) @ [1, 1j])
    c[rng.choice(N, s, replace=False)] = sizes * np.exp(2j * np.pi * rng.random(s))
    return c / np.linalg.norm(c)


def noise(rng: np.random.Generator, m: int, size: float) -> np.ndarray:
    """Complex normal noise with this standard deviation."""
    return size / sqrt(2) * (rng.normal(size=m) + 1j * rng.normal(size=m))


def errors_of(A: np.ndarray, y: np.ndarray, c: np.ndarray, k: int, lam: float) -> np.ndarray:
    """‖cⁿ - c‖ after every round with the unit step on B, from c⁰ = 0; the first is ‖c‖."""
    problem = StoredProblem.from_matrix(A, y, fit_intercept=False, column_scale="none")
    errors = [float(np.linalg.norm(c))]

    def keep(state: Any) -> bool:
        after = np.zeros(len(c), complex)
        after[state.support] = state.scaled_coef[:, 0]
        errors.append(float(np.linalg.norm(after - c)))
        return errors[-1] < FLOOR

    options = {"step_size": "normalized", "tol": 0.0, "max_iter": ROUNDS}
    hard_ridge_pursuit(problem, n_nonzero_coefs=k, alpha=lam, callback=keep, **options)
    return np.array(errors)


def rounds(quick: bool) -> dict[str, Any]:
    """Part 1: table of errors and contractions; returns the data of the left panel."""
    print("1. Error per round next to the bound; the pursuit with s and with 2s features\n")
    sizes = [(400, 12, 2)] if quick else [(400, 12, 2), (8000, 300, 50)]
    rows, shown = [], {}
    for m, N, s in sizes:
        for draw in range(2 if quick else 3):
            rng = np.random.default_rng(draw)
            A, c, e = features(rng, m, N), planted(rng, N, s, decay=0.7), noise(rng, m, NOISE)
            # 6s = N: the isometry constant takes one singular value decomposition.
            delta = isometry_constant(A / sqrt(m), 6 * s).upper
            for level, y in ((0.0, A @ c), (NOISE, A @ c + e)):
                values = {"s": s, "lam": 0.0, "norm": 1.0, "distance": 0.0}
                values["residual"] = float(np.linalg.norm(y - A @ c)) / sqrt(m)
                bounds = coefficient_bound(np.arange(ROUNDS + 1), delta=delta, **values)
                for k in (s, 2 * s):
                    errors = errors_of(A, y, c, k, 0.0)
                    n = len(errors) - 1
                    row = {"N": N, "s": s, "m": m, "draw": draw, "noise": level, "terms": k}
                    row |= {"delta": delta, "rounds": n, "last error": errors[-1]}
                    row |= {"last bound": bounds[n], "beta": contraction(delta)}
                    row["above"] = int(np.sum(errors > np.maximum(bounds[: n + 1], FLOOR)))
                    # Steps to exact recovery and steps with noise do not show the contraction.
                    ratios = (errors[1:] / errors[:-1])[errors[1:] > FLOOR]
                    known = not level and len(ratios) > 0
                    row["factor"] = float(np.exp(np.mean(np.log(ratios)))) if known else None
                    row["worst"] = float(np.max(ratios)) if known else None
                    rows.append(row)
                    if draw == 0:
                        shown[(level, k // s)] = (errors, bounds)
                        shown_delta = delta
    table = Table({name: [row[name] for row in rows] for name in rows[0]})
    print(table)
    print(
        f"\nrounds above the bound: {sum(table['above'])} of {sum(table['rounds'])}; errors below "
        f"{FLOOR:g} count as 0. factor: geometric mean of ‖cⁿ⁺¹ - c‖/‖cⁿ - c‖; worst: its "
        "maximum; empty if recovered in one round or with noise.\n"
    )
    return {"errors": shown, "size": sizes[-1], "delta": shown_delta}


def transition(quick: bool, draws: int) -> dict[str, Any]:
    """Part 2: share of recovered vectors over m and s."""
    N = 100 if quick else 400
    ms = np.arange(N // 20, N + 1, N // 20)
    ss = np.unique(np.round(np.array([0.005, 0.0125, *np.arange(1, 16) / 40]) * N).astype(int))
    ss = ss[ss > 0]
    print(f"2. Share of {draws} planted vectors recovered, N = {N}, s features, no noise, λ = 0\n")
    share = np.zeros((len(ss), len(ms)))
    for draw in range(draws):
        rng = np.random.default_rng(1000 + draw)
        A = features(rng, int(ms[-1]), N)
        for i, s in enumerate(ss.tolist()):
            c = planted(rng, N, s)
            for j, m in enumerate(ms.tolist()):
                if m > s:
                    share[i, j] += errors_of(A[:m], A[:m] @ c, c, s, 0.0)[-1] < 1e-4
    share /= draws
    half = [int(ms[np.argmax(row >= 0.5)]) if np.any(row >= 0.5) else None for row in share]
    over_s = [h and h / s for h, s in zip(half, ss, strict=True)]
    print(Table({"s": ss, "m for half": half, "m/s": over_s}))
    print()
    return {"N": N, "m": ms, "s": ss, "share": share}


def demands() -> None:
    """Part 3: what the theorem requires, and the bounds in terms of a function."""
    print("3. What the conditions require, assuming C₁ = C₂ = 1\n")
    common = {"d": 10, "lam": 1e-3, "gamma": 1.0, "sigma": 1.0, "failure": 0.01, **ASSUMED}
    for m, N, s in ((200, 400, 20), (1000, 10_000, 50)):
        print(f"m = {m}, N = {N}, s = {s}, d = 10, γ = σ = 1, λ = 1e-3, δ = 0.01")
        print(convergence_conditions(m=m, N=N, s=s, **common).summary(), end="\n\n")
    print("f(x) = exp(-‖x‖²/2), σ = 1: ‖f‖_ρ =", gaussian_norm(10, 1.0, 1.0))
    rows = []
    for N in (400, 10_000, 1_000_000):
        radius = feature_radius(N=N, failure=0.01)
        printed = printed_feature_radius(N=N, m=1000, d=10, gamma=1.0, sigma=1.0, failure=0.01)
        values = {"N": N, "s": 20, "lam": 0.0, "f_norm": 1.0}
        rows.append(
            {
                "N": N,
                "ε": radius,
                "ε of the worst of 1000 rows": feature_radius(N=N, failure=0.01 / 1000),
                "ε printed": printed,
                "function bound, δ = 0": float(
                    function_bound(inf, delta=0.0, radius=radius, **values)
                ),
                "error of c = 0": 1 / sqrt(N),
            }
        )
    print(Table({name: [row[name] for row in rows] for name in rows[0]}), end="\n\n")


def ridge(quick: bool) -> None:
    """Part 4: the effect of λ."""
    print("4. Effect of λ on δ_6s(B), β, the constants, the bound and the error, without noise\n")
    m, N, s = (400, 12, 2) if quick else (4000, 120, 20)
    rng = np.random.default_rng(0)
    A, c = features(rng, m, N), planted(rng, N, s, decay=0.9)
    delta = isometry_constant(A / sqrt(m), 6 * s).upper
    lams = [0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 5.0]
    setting = {"m": m, "N": N, "s": s, "d": D, "gamma": 1.0, "sigma": SIGMA, "failure": 0.01}
    rest = {"norm": 1.0, "distance": best_terms_distance(c, s), "residual": 0.0}
    moved = ridge_effects(lams, delta=delta, **setting, **ASSUMED, **rest)
    measured = [errors_of(A, A @ c, c, 2 * s, lam)[-1] for lam in lams]
    keep = ("lam", "delta", "beta", "D1", "D2", "bound", "rows_right", "spread_left")
    columns = {name: moved[name] for name in keep}
    print(f"m = {m}, N = {N}, s = {s}, ‖c‖ = 1; without the ridge δ_6s = {delta:.4g}")
    print(Table(columns | {"error": measured, "λ/(1+λ)": [x / (1 + x) for x in lams]}))
    m, N, s = 200, 400, 20
    found = isometry_constant(features(rng, m, N) / sqrt(m), 6 * s)
    print(
        f"\nm = {m}, N = {N}, s = {s}, where recovery is typical: δ_6s is between "
        f"{found.lower:.3g} and {found.upper:.3g}; the theorem needs at least "
        f"λ > {sqrt(3) * found.lower - 1:.3g}\n"
    )


def write_numbers(left: dict[str, Any], right: dict[str, Any], path: Path) -> None:
    """Write all numbers of the figure to one file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["panel", "noise", "terms_over_s", "round", "m", "s", "value", "bound"])
        for (level, times), (errors, bounds) in left["errors"].items():
            for n, error in enumerate(errors):
                row = ["error", level, times, n, *left["size"][::2], f"{error:.6g}"]
                out.writerow([*row, f"{bounds[n]:.6g}"])
        for i, s in enumerate(right["s"]):
            for j, m in enumerate(right["m"]):
                out.writerow(["recovered", "", "", "", m, s, f"{right['share'][i, j]:.6g}", ""])


def draw(left: dict[str, Any], right: dict[str, Any], draws: int, path: Path) -> None:
    """Draw error per round with its bound, and the share of recovered vectors over m and s."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot(1, 2, 1)
    m, N, s = left["size"]
    colours = {0.0: "C0", NOISE: "C1"}
    names = {0.0: "no noise", NOISE: f"noise {NOISE:g}"}
    for (level, times), (errors, _) in left["errors"].items():
        style = {"color": colours[level], "marker": "o" if times == 1 else "s", "markersize": 5}
        style |= {"fillstyle": "full" if times == 1 else "none"}
        label = f"{names[level]}, {'s' if times == 1 else '2s'} features"
        axes.plot(np.maximum(errors, FLOOR), label=label, **style)
    last = max(len(errors) for errors, _ in left["errors"].values())
    for level in colours:
        style = {"color": colours[level], "linestyle": "--", "linewidth": 1.2}
        bounds = left["errors"][level, 2][1]
        axes.plot(bounds[: last + 2], label=f"bound, {names[level]}", **style)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("round n")
    axes.set_ylabel(f"‖cⁿ - c‖, with ‖c‖ = 1; at {FLOOR:g}: recovered")
    axes.set_title(
        f"Theorem 3.1: m = {m}, N = {N}, s = {s}, δ$_{{6s}}$ = {left['delta']:.2f}",
        fontsize="medium",
    )
    axes.legend(fontsize="small", frameon=False)

    axes = figure.add_subplot(1, 2, 2)
    ms, ss = right["m"], right["s"]
    shown = axes.pcolormesh(
        ms, ss, right["share"], cmap="cividis", vmin=0, vmax=1, shading="nearest"
    )
    figure.colorbar(shown, ax=axes, label=f"share of {draws} vectors recovered")
    axes.plot(ms, ms / 2, color="white", linestyle=":", linewidth=1.2)
    middle = ms[len(ms) // 4]
    axes.text(middle, 0.8 * middle, "s = m/2", color="white", ha="center")
    axes.set_ylim(ss[0], ss[-1])
    axes.set_xlim(ms[0], ms[-1])
    axes.set_xlabel("rows m")
    axes.set_ylabel("sparsity s")
    axes.set_title(f"Phase transition: N = {right['N']}, s features, no noise", fontsize="medium")
    # Leave out the matplotlib version, so that equal numbers more often give equal files.
    figure.savefig(path, dpi=120, metadata={"Software": None})


def main() -> None:
    """Print the four parts and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20, help="draws of the phase transition")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, for a quick look")
    parser.add_argument("--folder", type=Path, default=Path("docs/figures"))
    given = parser.parse_args()
    draws = min(given.draws, 5) if given.quick else given.draws
    started = time.perf_counter()
    left = rounds(given.quick)
    right = transition(given.quick, draws)
    demands()
    ridge(given.quick)
    write_numbers(left, right, given.folder / "theory.csv")
    draw(left, right, draws, given.folder / "theory.png")
    print(f"{given.folder / 'theory.png'} and theory.csv; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
