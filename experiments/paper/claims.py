"""The paper's claims, each checked by a function of the evidence.

A check returns a verdict and a sentence with the numbers. "Reproduced" means that the claim holds
in our runs, "worse" that it does not, "better" that even more than it says holds.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.paper.evidence import Evidence, NotRunError
from experiments.paper.figure_numbers import (
    PRINTED_RATIO,
    TIMED,
    growth_exponents,
    inputs_of_g,
    ratios,
)
from experiments.paper.verdicts import Judgement, Verdict
from experiments.results import Row
from experiments.tables import ConfigError, build, nearest

NEAR = 1.1  # errors count as equal if their ratio is within this
MOST = 0.9  # a share of the draws that counts as "in general"

Q = (1, 3, 5)
TRUE_Q = {"inverse_norm": 5, "norm": 5, "ratio": 3, "laplace_sum": 1}
READINGS = ("unit", "raw")
FRIEDMAN = ("friedman1", "friedman2", "friedman3")
QUOTED = ("svm", "lm", "mnet", "forest", "anova")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper."""

    says: str
    where: str
    check: str


@dataclass(frozen=True)
class _File:
    claims: tuple[Claim, ...]


def load_claims(path: Path) -> tuple[Claim, ...]:
    """Read claims.toml; unknown keys and checks are errors."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name}: {error}.") from error
    claims = build(_File, content, path.name).claims
    for claim in claims:
        if claim.check not in CHECKS:
            told = nearest(claim.check, CHECKS)
            raise ConfigError(f"{path.name}: unknown check {claim.check!r}. {told}")
    return claims


def judge_claim(claim: Claim, evidence: Evidence) -> Judgement:
    """The verdict on a claim; "not run" where rows are missing."""
    try:
        return CHECKS[claim.check](evidence)
    except NotRunError as error:
        return Judgement(Verdict.NOT_RUN, str(error))


def _held(holds: bool, reason: str) -> Judgement:
    return Judgement(Verdict.REPRODUCED if holds else Verdict.WORSE, reason)


# --- settings ---


def step_size(evidence: Evidence) -> Judgement:
    """The factor between the largest and the smallest median over μ."""
    factors = {}
    for part, column, stem in (("real", "error", "harfe"), ("friedman", "error_clean", "friedman")):
        study = evidence.studies["step"]
        methods = [name for name in study.parts[part].methods if name.startswith(stem)]
        for problem in evidence.problems("step", part):
            medians = [evidence.median("step", part, problem, m, column) for m in methods]
            factors[problem] = max(medians) / min(medians)
    small = [problem for problem, factor in factors.items() if factor <= NEAR]
    told = ", ".join(f"{problem} {factor:.2f}" for problem, factor in factors.items())
    return _held(
        len(small) == len(factors),
        f"Largest over smallest median error for μ from 0.01 to 1: {told}; "
        f"within {NEAR} on {len(small)} of {len(factors)}.",
    )


def sparsity_ratio(evidence: Evidence) -> Judgement:
    """s/N of Table 3, as printed."""
    shares = {name: row["s"] / row["N"] for name, row in evidence.printed.table3.rows.items()}
    fit = [name for name, share in shares.items() if share in (0.05, 0.1)]
    others = ", ".join(f"{name} {100 * shares[name]:.2g} %" for name in shares if name not in fit)
    return _held(
        len(fit) == len(shares),
        f"True in {len(fit)} of {len(shares)} rows of the paper's own Table 3; not {others}.",
    )


# --- Table 1 ---


def _table1(evidence: Evidence, problem: str, method: str) -> float:
    return evidence.median("table1", "functions", problem, method, "error_relative")


def _wins(evidence: Evidence, ours: str, theirs: str) -> tuple[int, int]:
    """Cells of Table 1 in which the first method has the smaller median, and all cells."""
    pairs = [
        (
            _table1(evidence, problem, ours.format(q=q)),
            _table1(evidence, problem, theirs.format(q=q)),
        )
        for problem in evidence.problems("table1", "functions")
        for q in Q
    ]
    return sum(a < b for a, b in pairs), len(pairs)


def _printed_wins(evidence: Evidence, theirs: str) -> int:
    printed = evidence.printed.table1
    return sum(
        printed.rows[f"HARFE, λ > 0, q = {q}"][column] < value
        for q in Q
        for column, value in printed.rows[theirs.format(q=q)].items()
    )


def ridge_against_none(evidence: Evidence) -> Judgement:
    """λ > 0 and λ = 0 in the same reading, cell by cell."""
    told, best = [], 0
    for reading in READINGS:
        ours, theirs = (f"{name},reading={reading},q={{q}}" for name in ("harfe", "harfe0"))
        wins, cells = _wins(evidence, ours, theirs)
        best = max(best, wins)
        told.append(f"{wins} of {cells} ({reading})")
    own = _printed_wins(evidence, "HARFE, λ = 0, q = {q}")
    return _held(
        best == cells, f"λ > 0 has the lower median in {', '.join(told)}; in the paper in {own}."
    )


def ridge_against_srfe(evidence: Evidence) -> Judgement:
    """λ > 0 against SRFE, each in all its readings."""
    told, best = [], 0
    for rival, label in (("srfe", "η by cross-validation"), ("srfe_1", "residual 1 %")):
        for reading in (*READINGS, "raw_lambda"):
            wins, cells = _wins(evidence, f"harfe,reading={reading},q={{q}}", f"{rival},q={{q}}")
            best = max(best, wins)
            told.append(f"{wins} of {cells} ({reading}, {label})")
    own = _printed_wins(evidence, "SRFE, q = {q}")
    return _held(
        best == cells, f"HARFE has the lower median in {', '.join(told)}; in the paper in {own}."
    )


def true_order(evidence: Evidence) -> Judgement:
    """The q with the lowest median against the order of the function."""
    told, hits = [], dict.fromkeys(READINGS, 0)
    for problem, true in TRUE_Q.items():
        best = {}
        for reading in READINGS:
            medians = {q: _table1(evidence, problem, f"harfe,reading={reading},q={q}") for q in Q}
            best[reading] = min(medians, key=lambda q: medians[q])
            hits[reading] += best[reading] == true
        found = " / ".join(str(best[reading]) for reading in READINGS)
        told.append(f"{problem} has order {true}, the best is q = {found}")
    return _held(
        max(hits.values()) == len(TRUE_Q), f"{'; '.join(told)} ({' / '.join(READINGS)} columns)."
    )


def elastic_net(evidence: Evidence) -> Judgement:
    """Elastic Net over SRFE, both tuned by cross-validation, on the same features."""
    factors = [
        _table1(evidence, problem, f"elastic_net,q={q}") / _table1(evidence, problem, f"srfe,q={q}")
        for problem in evidence.problems("table1", "functions")
        for q in Q
    ]
    equal = sum(1 / NEAR <= factor <= NEAR for factor in factors)
    return _held(
        equal == len(factors),
        f"Elastic Net over SRFE: {min(factors):.2f} to {max(factors):.2f}, geometric mean "
        f"{statistics.geometric_mean(factors):.2f}, within 10 % in {equal} of {len(factors)}.",
    )


# --- Table 2 ---


def _table2(evidence: Evidence, problem: str, method: str, column: str) -> float:
    return evidence.median("table2", "friedman", problem, method, column)


def _lowest_reading(evidence: Evidence, problem: str, method: str, column: str) -> float:
    """The lowest median of HARFE over the readings, which favours it."""
    return min(
        _table2(evidence, problem, f"{method},reading={reading}", column)
        for reading in (*READINGS, "raw_lambda")
    )


def against_anova(evidence: Evidence) -> Judgement:
    """HARFE with q = 2 over ANOVA, both against the function itself."""
    factors = [
        _lowest_reading(evidence, problem, "harfe_q2", "error_clean")
        / _table2(evidence, problem, "anova", "error_clean")
        for problem in FRIEDMAN
    ]
    told = " / ".join(f"{factor:.2f}" for factor in factors)
    comparable, *others = factors
    return _held(
        comparable <= NEAR and max(others) < 1,
        f"HARFE (its best reading) over ANOVA, noise-free errors of both: {told}. The paper "
        "compares noise-free errors of HARFE with noisy ones of ANOVA.",
    )


def order_unknown(evidence: Evidence) -> Judgement:
    """HARFE with q = d against the quoted methods, noise-free error of all."""
    told, holds = [], True
    for problem in FRIEDMAN[1:]:
        own = _lowest_reading(evidence, problem, "harfe_q", "error_clean")
        rivals = {m: _table2(evidence, problem, m, "error_clean") for m in (*QUOTED, "srfe")}
        lower = [name for name, error in rivals.items() if error < own]
        holds = holds and not lower
        told.append(f"{problem}: {own:.3g}, lower: {', '.join(lower) or 'none'}")
    return _held(holds, f"Noise-free errors, HARFE with q = 4: {'; '.join(told)}.")


def fourteen_times(evidence: Evidence) -> Judgement:
    """The best quoted method over HARFE on f₂, in equal measures."""
    factors = {}
    for column in ("error_clean", "error"):
        best = min(_table2(evidence, "friedman2", m, column) for m in QUOTED)
        own = _lowest_reading(evidence, "friedman2", "harfe_q2", column)
        factors[column] = best / own
    printed = evidence.printed.table2
    mixed = min(
        printed.value(row, "friedman2") for row in printed.rows if row not in printed.measures
    ) / printed.value("HARFE, q = 2", "friedman2")
    return _held(
        min(factors.values()) >= 14 / NEAR,
        f"The best quoted method over HARFE: {factors['error_clean']:.2f} noise-free, "
        f"{factors['error']:.2f} against noisy rows. In the paper {mixed:.1f}, noisy over "
        "noise-free.",
    )


# --- figures ---


def parity(evidence: Evidence) -> Judgement:
    """Scatter about the diagonal and bias where f is small, means over draws."""
    scatter, bias = {}, {}
    for problem in FRIEDMAN:
        per_draw = []
        for draw in evidence.details("figure2", problem, "harfe"):
            truth, predicted = np.array(draw["truth"]), np.array(draw["predicted"])
            residual = predicted - truth
            lowest = truth <= np.quantile(truth, 0.1)
            per_draw.append([residual.var() / truth.var(), residual[lowest].mean() / truth.std()])
        scatter[problem], bias[problem] = np.mean(per_draw, axis=0)
    told = "; ".join(
        f"{problem} {scatter[problem]:.3f} and {bias[problem]:+.2f}" for problem in FRIEDMAN
    )
    lower = max(scatter["friedman1"], scatter["friedman2"]) < scatter["friedman3"]
    return _held(
        lower and bias["friedman3"] > 0.1,
        "Variance of the residual over that of f, and mean residual in the lowest tenth of f in "
        f"standard deviations of f: {told}.",
    )


def faster(evidence: Evidence) -> Judgement:
    """Time of SRFE over that of HARFE at the largest N, and the growth of both."""
    study, rows = evidence.studies["figure3"], evidence.rows["figure3"]
    timed = ratios(study, rows)
    smallest, largest = min(timed.column("N"), default=0), max(timed.column("N"), default=0)
    at_largest = {
        TIMED[method]: found.column("ratio")
        for method, found in timed.among("N", [largest]).groups("method").items()
    }
    if not at_largest:
        raise NotRunError("figure3 has not been run")
    told = "; ".join(
        f"{method}: {statistics.median(found):.1f} times ({min(found):.1f} to {max(found):.1f})"
        for method, found in at_largest.items()
    )
    grown = ", ".join(
        f"{TIMED[method]} N^{statistics.median(found.column('exponent')):.2f}"
        for method, found in growth_exponents(study, rows).groups("method").items()
    )
    lowest = min(statistics.median(found) for found in at_largest.values())
    verdict = (
        Verdict.WORSE
        if lowest < PRINTED_RATIO / NEAR
        else Verdict.BETTER
        if lowest > PRINTED_RATIO * NEAR
        else Verdict.REPRODUCED
    )
    return Judgement(
        verdict,
        f"SRFE over HARFE at N = {largest}, median over five pairs of m and d: {told}. Median "
        f"growth: {grown}. HARFE reaches the residual in {_reached(rows, largest)} runs at that N "
        f"and in {_reached(rows, smallest)} at N = {smallest}; otherwise its support repeats "
        "first.",
    )


def _reached(rows: Sequence[Row], N: int) -> str:
    """How many of the runs of HARFE with N features stopped on the residual."""
    own = [row for row in rows if row.method == f"harfe,N={N}"]
    return f"{sum('stop=residual' in row.chosen.split() for row in own)} of {len(own)}"


def _shares(evidence: Evidence, study: str, problem: str, method: str, kind: str) -> np.ndarray:
    """Share of each input, (draws, inputs)."""
    return np.array([draw[kind] for draw in evidence.details(study, problem, method)])


def _leaders(share: np.ndarray, count: int) -> set[int]:
    """The inputs with the largest shares, counted from 1."""
    return {int(j) + 1 for j in np.argsort(-share, kind="stable")[:count]}


def top_five(evidence: Evidence) -> Judgement:
    """The number of draws in which the five true inputs of g lead, reading by reading."""
    numbers = inputs_of_g(evidence.studies["figure4"], evidence.rows["figure4"])
    if not numbers.rows:
        raise NotRunError("figure4 has not been run")
    told, best = [], 0.0
    for label, own in numbers.groups("method").items():
        leads, draws = own.column("leads")[0], own.column("draws")[0]
        best = max(best, leads / draws)
        told.append(f"{label}: {leads} of {draws}")
    return _held(best >= MOST, f"Draws in which x1 to x5 lead: {'; '.join(told)}.")


def eight_of_eleven(evidence: Evidence) -> Judgement:
    """Where HARFE has the lowest median of the seven methods, as run here."""
    methods = ("harfe", "cosso", "lasso", "salsa", "spam", "srfe", "ssam_fixed")
    problems = evidence.problems("table4", "paper_rows")
    first, against_print = [], []
    for problem in problems:
        medians = {
            m: evidence.median("table4", "paper_rows", problem, m, "error")
            for m in methods
            if problem not in evidence.studies["table4"].methods[m].not_on
        }
        if medians["harfe"] == min(medians.values()):
            first.append(problem)
        rows = evidence.printed.table4.rows
        others = [row[problem] for name, row in rows.items() if name != "HARFE" and problem in row]
        against_print += [problem] if medians["harfe"] < min(others) else []
    return _held(
        len(first) >= 8,
        f"Against the six rivals as we run them HARFE is first on {len(first)} of {len(problems)}"
        f"{_listed(first)}; against the rivals' published numbers on {len(against_print)}"
        f"{_listed(against_print)}.",
    )


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def propulsion(evidence: Evidence) -> Judgement:
    """Most and least used inputs of propulsion."""
    kept = _shares(evidence, "figure5", "propulsion", "harfe", "kept")
    mean = kept.mean(axis=0)
    most, least = _leaders(mean, 1), _leaders(-mean, 2)
    first = sum(_leaders(share, 1) == {3} for share in kept)
    last = sum(_leaders(-share, 2) == {14, 15} for share in kept)
    return _held(
        most == {3} and least == {14, 15},
        f"On average over draws, most: {_numbers(most)}, least: {_numbers(least)}. The 3rd leads "
        f"in {first} of {len(kept)} draws; the 14th and 15th are last in {last}.",
    )


def housing(evidence: Evidence) -> Judgement:
    """The two inputs of housing that are used most."""
    kept = _shares(evidence, "figure5", "housing", "harfe", "kept")
    hits = sum(_leaders(share, 2) == {5, 12} for share in kept)
    top = _leaders(kept.mean(axis=0), 2)
    return _held(
        top == {5, 12},
        f"On average over draws {_numbers(top)} lead; the 5th and 12th in {hits} of {len(kept)}.",
    )


def speech(evidence: Evidence) -> Judgement:
    """The input of speech that is used most."""
    kept = _shares(evidence, "figure5", "speech", "harfe", "kept")
    hits = sum(_leaders(share, 1) == {13} for share in kept)
    top = _leaders(kept.mean(axis=0), 1)
    return _held(
        top == {13},
        f"On average over draws {_numbers(top)} leads; the 13th in {hits} of {len(kept)} draws.",
    )


def telemonitor(evidence: Evidence) -> Judgement:
    """Inputs of telemonitor whose share rises from pool to kept features in nearly all draws."""
    kept = _shares(evidence, "figure5", "telemonitor", "harfe", "kept")
    drawn = _shares(evidence, "figure5", "telemonitor", "harfe", "drawn")
    often = np.mean(kept > drawn, axis=0)
    found = {int(j) + 1 for j in np.flatnonzero(often >= MOST)}
    return _held(
        len(found) >= 3,
        f"{len(found)} of {kept.shape[1]} inputs have a larger share of the kept features than of "
        f"the pool in nine of ten draws: {_numbers(found)}.",
    )


def _numbers(found: set[int]) -> str:
    return ", ".join(map(str, sorted(found))) or "none"


def start_uniform(evidence: Evidence) -> Judgement:
    """Mean shares in the pool over draws against the uniform share."""
    told, worst = [], 0.0
    for problem in evidence.problems("figure5", "paper_rows"):
        drawn = _shares(evidence, "figure5", problem, "harfe", "drawn")
        q = evidence.printed.table3.rows[problem]["q"]
        uniform = q / drawn.shape[1]
        off = float(np.abs(drawn.mean(axis=0) / uniform - 1).max())
        worst = max(worst, off)
        told.append(f"{problem} {100 * off:.1f} %")
    return _held(
        worst <= 0.05,
        f"Largest deviation of an input's mean share in the pool from q/d: {', '.join(told)}.",
    )


# --- robustness, lottery ticket ---


def _spoilt(evidence: Evidence, part: str, problem: str, method: str) -> float:
    return evidence.median("outliers", part, problem, method, "error_clean")


def ridge_mitigates(evidence: Evidence) -> Judgement:
    """λ > 0 against λ = 0 on corrupted data, both tuned."""
    parts = [part for part in evidence.studies["outliers"].parts if part != "clean"]
    factors = [
        _spoilt(evidence, part, problem, "harfe") / _spoilt(evidence, part, problem, "harfe0")
        for part in parts
        for problem in FRIEDMAN
    ]
    wins = sum(factor < 1 for factor in factors)
    return _held(
        wins >= MOST * len(factors),
        f"λ > 0 has the lower error in {wins} of {len(factors)} corrupted cases; its error over "
        f"that of λ = 0 has the geometric mean {statistics.geometric_mean(factors):.2f}, from "
        f"{min(factors):.2f} to {max(factors):.2f}.",
    )


def robust(evidence: Evidence) -> Judgement:
    """Growth of the error of HARFE with noise and outliers; cases where the mean is as good."""
    told, holds = [], True
    for part, label in (("noise50", "noise +0.5"), ("outliers05", "5 % outliers")):
        factors = [
            _spoilt(evidence, part, problem, "harfe") / _spoilt(evidence, "clean", problem, "harfe")
            for problem in FRIEDMAN
        ]
        holds = holds and max(factors) <= 2
        told.append(f"{label}: {' / '.join(f'{factor:.1f}' for factor in factors)} times")
    beaten = [
        part
        for part in evidence.studies["outliers"].parts
        if any(
            _spoilt(evidence, part, problem, "harfe") >= _spoilt(evidence, part, problem, "mean")
            for problem in FRIEDMAN
        )
    ]
    return _held(
        holds,
        f"Error of tuned HARFE over that on the uncorrupted data, Friedman 1-3: {'; '.join(told)}. "
        f"Cases where it is no better than the mean of y: {', '.join(beaten) or 'none'}.",
    )


def lottery_ticket(evidence: Evidence) -> Judgement:
    """Kept features against all and against random ones, where N is at least ten times m."""
    study = evidence.studies["lottery"]
    sizes = sorted({m.settings["N"] for name, m in study.methods.items() if name.startswith("all")})
    told, holds = [], True
    for N in [size for size in sizes if size >= 2000]:
        of_all, of_random = [], []
        for problem in FRIEDMAN:
            kept, whole, random = (
                evidence.median("lottery", "functions", problem, method, "error_clean")
                for method in (f"kept,N={N}", f"all,N={N}", "random")
            )
            of_all.append(kept / whole)
            of_random.append(kept / random)
        holds = holds and max(of_all) <= NEAR and max(of_random) < 1
        told.append(
            f"N = {N}: {' / '.join(f'{r:.2f}' for r in of_all)} of that of all N, "
            f"{' / '.join(f'{r:.2f}' for r in of_random)} of that of 50 random ones"
        )
    return _held(holds, f"Error of 50 kept features, Friedman 1-3, 200 rows. {'; '.join(told)}.")


CHECKS: dict[str, Callable[[Evidence], Judgement]] = {
    check.__name__: check
    for check in (
        step_size,
        sparsity_ratio,
        ridge_against_none,
        ridge_against_srfe,
        true_order,
        elastic_net,
        against_anova,
        order_unknown,
        fourteen_times,
        parity,
        faster,
        top_five,
        eight_of_eleven,
        propulsion,
        housing,
        speech,
        telemonitor,
        start_uniform,
        ridge_mitigates,
        robust,
        lottery_ticket,
    )
}
