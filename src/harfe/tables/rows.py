"""Training rows of a table, and the fingerprint of a table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe._core.wording import plural
from harfe.tables.checks import finite_numbers
from harfe.tables.columns import Hint, TableError, as_frame, place_of
from harfe.tables.encoder import TableEncoder


@dataclass(frozen=True)
class TrainingRows:
    """Rows of a table, ready for a fit.

    Attributes
    ----------
    X, y : arrays
    weights : array of shape (rows,) or None
    kept : int array
        Their places in the table, since rows with missing values may be left out.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    kept: NDArray[np.intp]

    def take(self, places: NDArray[np.intp]) -> TrainingRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[places]
        return TrainingRows(self.X[places], self.y[places], weights, self.kept[places])

    def split(self, share: float | None, seed: int) -> tuple[TrainingRows, TrainingRows | None]:
        """Set a share of the rows aside: rows to fit, and rows held out (None without a share).

        The same rows are held out for the same table, share and seed.

        Raises
        ------
        TableError
            If fewer than two rows are left to fit, or none are held out.
        """
        if share is None:
            return self, None
        order = np.random.default_rng(seed).permutation(len(self.y))
        count = round(share * len(order))
        held_out = self.take(np.sort(order[:count]))
        if not 1 <= count <= len(order) - 2:
            what = f"sets {count} of {len(order)} rows aside"
        elif held_out.weights is not None and not held_out.weights.any():
            what = f"sets {count} rows aside, all of weight 0"
        else:
            return self.take(np.sort(order[count:])), held_out
        raise TableError(
            f"{{given}} {what}: pass a share that leaves at least 2 rows to fit and 1 to measure "
            "the error, e.g. {example}",
            given=Hint("holdout", share),
            example=Hint("holdout", 0.2),
        )


def training_rows(encoder: TableEncoder, table: Any, weight: str | None = None) -> TrainingRows:
    """Return inputs, targets and weights of the complete rows.

    Parameters
    ----------
    encoder : TableEncoder
        With a target.
    table : table
    weight : str, default=None
        Column with the weight of each row.

    Raises
    ------
    TableError
        If fewer than two rows are left.
    """
    frame = as_frame(table)
    X, y = encoder.encode(frame), encoder.targets(frame)
    good = np.isfinite(y) & np.all(np.isfinite(X), axis=1)
    weights = None
    if weight is not None:
        place = place_of(weight, frame.names, frame.source, "weight")
        weights = finite_numbers(frame, frame.names[place], frame.columns[place], encoder.na)
        wrong = ~(weights >= 0)
        if wrong.any():
            raise TableError(
                f"column {frame.names[place]!r} holds the weights, but is negative or missing in "
                f"{frame.where(int(np.argmax(wrong)))}: write a number of at least 0"
            )
        weights = weights[good]
    kept = np.flatnonzero(good)
    if len(kept) < 2:
        raise TableError(
            f"{frame.source} has {plural(len(kept), 'complete row')}: a fit needs at least 2, and "
            "some dozens to learn anything"
        )
    return TrainingRows(np.ascontiguousarray(X[good]), y[good], weights, kept)


def fingerprint(table: Any) -> str:
    """Return the SHA-256 of names and values, which does not depend on the file format."""
    frame = as_frame(table)
    digest = hashlib.sha256()
    for name, column in zip(frame.names, frame.columns, strict=True):
        digest.update(f"{len(name)}:{name}".encode())
        if isinstance(column, tuple):
            digest.update("\0".join(column).encode())
        else:
            # All NaN alike, and -0.0 like 0.0.
            digest.update(np.where(np.isnan(column), np.nan, column + 0.0).tobytes())
    return digest.hexdigest()
