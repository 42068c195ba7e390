"""The figures of the reproduction as files: pictures with captions, and their numbers.

    rows  ->  numbers (also written as CSV)  ->  picture and caption

This module defines the figures of each study and their captions, and writes the files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.config import Study
from experiments.paper import drawing, figure_numbers
from experiments.paper.figure_numbers import (
    FUNCTIONS,
    PRINTED_RATIO,
    PRINTED_STEP,
    TIMED,
    Numbers,
    repetition_counts,
)
from experiments.results import COLUMNS, ResultsError, Row, write_whole


@dataclass(frozen=True)
class Picture:
    """A file with a picture, and its caption."""

    path: Path
    caption: str


def write_figures(name: str, study: Study, rows: Sequence[Row], folder: Path) -> list[Picture]:
    """Draw the figures of a study and write their numbers next to them.

    Parameters
    ----------
    name : str
        Name of the study; one without figures gives an empty list.
    study : Study
        The study, which also sets the order of parts and methods.
    rows : sequence of Row
        Its results so far; failures and rows of other studies are ignored.
    folder : Path
        Where `<figure>.png` and `<figure>.csv` go; created if it does not exist.

    Returns
    -------
    list of Picture
        The pictures that were written; a figure without numbers has none.

    Raises
    ------
    ResultsError
        If a file of numbers would overwrite a file of rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draws = _draws(study, rows)
    pictures = []
    for figure in _FIGURES.get(name, ()):
        numbers = figure.numbers(study, rows)
        if numbers.rows:
            path = folder / f"{figure.name}.png"
            _refuse_rows(path.with_suffix(".csv"))
            write_whole(path.with_suffix(".csv"), numbers.text())
            with _replacing(path) as beside:
                figure.draw(numbers, beside)
            pictures.append(Picture(path, figure.caption(numbers, draws)))
    return pictures


# --- captions ---


def _say_parity(numbers: Numbers, draws: str) -> str:
    errors = [
        f"{FUNCTIONS.get(p, p)} {own.column('relative_error')[0]:.3f}"
        for p, own in numbers.groups("problem").items()
    ]
    return (
        f"HARFE's predictions against the noise-free values of the test rows, for the first of "
        f"{draws}; the line is a perfect prediction. Relative RMS errors: {', '.join(errors)}."
    )


def _say_run_times(numbers: Numbers, draws: str) -> str:
    return (
        f"Seconds to find the coefficients against the number of features N, median of {draws}. "
        "On the left d = 100 inputs and m rows, on the right m = 500 rows and d inputs."
    )


def _say_ratios(numbers: Numbers, draws: str) -> str:
    told = []
    for method, own in numbers.groups("method").items():
        found = own.column("ratio")
        told.append(f"{TIMED[method]} {_short(min(found))} to {_short(max(found))} times")
    return (
        f"Seconds as a multiple of HARFE's, ratio of medians of {draws}: {', '.join(told)}. The "
        f"dash-dotted line is the paper's {PRINTED_RATIO:g}."
    )


def _say_inputs_of_g(numbers: Numbers, draws: str) -> str:
    panels = numbers.groups("method").values()
    always = sum(own.column("leads")[0] == own.column("draws")[0] for own in panels)
    return (
        f"Share of the kept features that use each input of g, mean of {draws}, a panel for "
        f"each choice of settings. In {always} of {len(panels)} of them the five inputs "
        "that matter lead in all draws."
    )


def _say_inputs_of_real_data(numbers: Numbers, draws: str) -> str:
    first = [
        f"{own.column('input')[int(np.argmax(own.column('kept')))]} on {problem}"
        for problem, own in numbers.groups("problem").items()
    ]
    return (
        f"Share of the kept features that use each input, mean and 10-90 % of {draws}; the line is "
        f"the share in the pool. The most used input is {', '.join(first)}."
    )


def _say_steps(numbers: Numbers, draws: str) -> str:
    found = numbers.column("relative")
    return (
        f"Median error of {draws} against the step size μ, divided by the one at the paper's μ = "
        f"{PRINTED_STEP:g}: from {_short(min(found))} to {_short(max(found))}."
    )


def _say_spoilt(numbers: Numbers, draws: str) -> str:
    return (
        f"Median test MSE against the noise-free function, of {draws}, with more noise (in "
        "standard deviations of f) or with outliers (in percent of the training rows)."
    )


def _say_tickets(numbers: Numbers, draws: str) -> str:
    return (
        "Test MSE against the noise-free function of the few features that HARFE keeps of N, of "
        f"all N, and of as few drawn at random, against N/m; median and 10-90 % of {draws}."
    )


def _draws(study: Study, rows: Sequence[Row]) -> str:
    """The number of repetitions, in words."""
    counts = repetition_counts(study, rows)
    if len(counts) > 1:
        return f"{min(counts)} to {max(counts)} draws"
    return "1 draw" if counts == {1} else f"{max(counts, default=0)} draws"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


# --- which figures there are ---


class _Figure(NamedTuple):
    """A figure: its numbers, drawing and caption."""

    name: str
    numbers: Callable[[Study, Sequence[Row]], Numbers]
    draw: Callable[[Numbers, Path], None]
    caption: Callable[[Numbers, str], str]


_FIGURES = {
    "figure2": [_Figure("figure2", figure_numbers.parity, drawing.draw_parity, _say_parity)],
    "figure3": [
        _Figure("figure3", figure_numbers.run_times, drawing.draw_run_times, _say_run_times),
        _Figure("figure3_ratio", figure_numbers.ratios, drawing.draw_ratios, _say_ratios),
    ],
    "figure4": [
        _Figure("figure4", figure_numbers.inputs_of_g, drawing.draw_inputs_of_g, _say_inputs_of_g)
    ],
    "figure5": [
        _Figure(
            "figure5",
            figure_numbers.inputs_of_real_data,
            drawing.draw_inputs_of_real_data,
            _say_inputs_of_real_data,
        )
    ],
    "step": [_Figure("step", figure_numbers.steps, drawing.draw_steps, _say_steps)],
    "outliers": [_Figure("outliers", figure_numbers.spoilt, drawing.draw_spoilt, _say_spoilt)],
    "lottery": [_Figure("lottery", figure_numbers.tickets, drawing.draw_tickets, _say_tickets)],
}


# --- files ---


def _refuse_rows(path: Path) -> None:
    """Raise an error rather than overwrite rows, which took hours and may have the same name."""
    if path.exists():
        with path.open(encoding="utf-8") as file:
            if file.readline().rstrip("\n") == ",".join(COLUMNS):
                raise ResultsError(
                    f"{path}: has rows of results, which the numbers of the figure would "
                    "overwrite. Write the figures into another folder."
                )


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file that then replaces this one: readers see the old one or the new."""
    beside = path.with_name(path.name + ".new")
    yield beside
    os.replace(beside, path)
