"""The paper's eleven real datasets, prepared exactly as in the paper."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from harfe.datasets._shared import FloatArray, bunch, unknown_name, whole

if TYPE_CHECKING:
    from sklearn.utils import Bunch


#: Origin of every real dataset by name; the last two are not part of the experiment.
ORIGINS = {
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
    """Return the names that `load_real` accepts: the paper's eleven datasets, then two variants."""
    return tuple(ORIGINS)


def load_real(
    name: str,
    split: Literal["paper"] | int = "paper",
    noise_seed: int = 0,
    data_home: str | os.PathLike[str] | None = None,
) -> Bunch:
    """Load a real dataset, prepared and split into training and test rows as in the paper.

    In this order: logarithms (target of propulsion, input `area` of forestfire as log(area + 1));
    choice of rows; standardisation of inputs and target by the mean and standard deviation
    (ddof = 1) of the training rows, where an input that is constant on them becomes 0 in both
    parts; noise inputs (36 for airfoil, 55 for ccpp), independent N(0, 1) and not standardised
    again. Galaxy is not standardised; its target is divided by the standard deviation of all 4000
    values.

    Parameters
    ----------
    name : str
        One of `list_real()`.
    split : "paper" or int, default="paper"
        "paper" takes the rows in splits.json. A seed shuffles the rows by
        ``p = numpy.random.default_rng(seed).permutation(n)`` and takes the first ``p[:m]`` for
        training and the next for testing, as many as in the paper (this shuffles galaxy, too). The
        paper has no rows for "ccpp_rest"; a seed splits it into halves.
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
        `paper` (the paper's N, s, m_lambda, q, ...) and `paper_mse` (by method). The last two are
        empty for the variants "telemonitor_sex1" and "ccpp_rest".

    Raises
    ------
    FileNotFoundError
        If the data are missing; the message says how to get them.
    ValueError
        If an argument is invalid, or a file is damaged: its SHA-256 is not that of the manifest.
    """
    if name not in ORIGINS:
        raise unknown_name(name, ORIGINS)
    if split != "paper":
        whole("split", split, 0, " or 'paper'")
    whole("noise_seed", noise_seed, 0)
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
    return bunch(
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
        "pass data_home=...) to a folder with datasets.json (the manifest), splits.json (the "
        f"paper's rows) and the CSV files that the manifest describes. Origin of {name!r}: "
        f"{ORIGINS[name]}; the form used in the paper is in experiments/datasets of "
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
            f"The file {str(path)!r} is damaged: its SHA-256 is {found}, but the manifest has "
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
    # Test the range: rounding of the mean can give a constant a deviation of 2e-16, not 0.
    constant = np.ptp(train, axis=0) == 0
    mean, scale = train.mean(axis=0), np.where(constant, np.inf, train.std(axis=0, ddof=1))
    return (train - mean) / scale, (test - mean) / scale


def _append_noise(X: FloatArray, n_columns: int, seed: np.random.SeedSequence) -> FloatArray:
    return np.hstack([X, np.random.default_rng(seed).standard_normal((len(X), n_columns))])


def _describe(name: str, entry: dict[str, Any], split: Literal["paper"] | int) -> str:
    notes = [entry["note"]] if "note" in entry else entry["remarks"]
    head = f"{name}: {entry['rows']} rows, target {entry['target_column']}, split {split!r}."
    origin = f"Origin: {entry.get('origin', ORIGINS[name])}."
    return "\n".join([head, origin, *(f"- {note}" for note in notes)])
