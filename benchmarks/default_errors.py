"""Test errors, intervals and sizes of the default fit, against those of an earlier commit.

    python benchmarks/default_errors.py [--only NAME ...] [--record] [--jobs 2]

Every case is a table and a split: tables of ``HARFE_DATA/uci`` with the splits stored there, the
training rows of the paper's real datasets cut 80/20 at random, and Friedman's functions with
noise, 200 rows, judged without it. `default_errors.json` holds the same for an earlier commit;
--record writes that file. Printed are the ratio of the errors for every table, as a geometric mean
over its splits with the standard error of that mean, and over all cases; the share of held-out rows
within the 90 % intervals (not of Friedman's functions, whose test rows have no noise); and the
ratio of the sizes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from harfe import HARFERegressorCV
from harfe.datasets import load_real, make_function

STORED = Path(__file__).with_suffix(".json")

# Number of splits of every table; those of UCI are stored in the folder `uci`.
UCI = {"autos": 4, "yacht": 2, "autompg": 2, "stock": 4, "energy": 4, "concrete": 6, "airfoil": 6}
UCI |= {"wine": 4, "sml": 2, "pumadyn32nm": 2, "pol": 2, "kin40k": 2}
UCI = {f"uci {name}": n for name, n in UCI.items()}
REAL = {"propulsion": 8, "galaxy": 2, "skillcraft": 2, "airfoil": 4, "forestfire": 4, "housing": 4}
REAL |= {"music": 2, "insulin": 4, "speech": 4, "telemonitor": 2, "ccpp": 2}
FRIEDMAN = {"friedman1": 12, "friedman2": 8, "friedman3": 8}
SHARE = 0.9


def load(name: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a case."""
    if name in FRIEDMAN:
        train = make_function(name, 200, random_state=split)
        test = make_function(name, 2000, noise=0.0, random_state=100 + split)
        return train.X, train.y, test.X, test.y
    if name in REAL:
        data = load_real(name)
        rows = np.random.default_rng(split).permutation(len(data.y_train))
        a, b = np.split(rows, [int(0.8 * len(rows))])
        return data.X_train[a], data.y_train[a], data.X_train[b], data.y_train[b]
    folder = Path(os.environ["HARFE_DATA"]) / "uci"
    name = name.removeprefix("uci ")
    with gzip.open(folder / f"{name}.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",")
    with gzip.open(folder / f"{name}.mask.csv.gz") as file:
        out = np.loadtxt(file, delimiter=",")[:, split] > 0
    return table[~out, :-1], table[~out, -1], table[out, :-1], table[out, -1]


def run(name: str, split: int) -> dict[str, Any]:
    """Fit a case, and judge it on its test rows."""
    X, y, X_new, y_new = load(name, split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HARFERegressorCV(random_state=0).fit(X, y)
        predicted, low, high = model.predict(X_new, interval=SHARE)
    return {
        "table": name,
        "split": split,
        "rmse": float(np.sqrt(np.mean((predicted - y_new) ** 2))),
        "within": float(np.mean((low <= y_new) & (y_new <= high))),
        "size": int(model.n_nonzero_coefs_),
    }


def compare(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> None:
    """Print the ratios to an earlier run."""
    before = {(row["table"], row["split"]): row for row in old}
    pairs = [(row, before[row["table"], row["split"]]) for row in new]
    print(f"{'table':12} {'splits':>6} {'error: new/old':>15} {'standard error':>15} {'size':>6}")
    for name in dict.fromkeys(row["table"] for row in new):
        some = [(a, b) for a, b in pairs if a["table"] == name]
        logs = np.log([a["rmse"] / b["rmse"] for a, b in some])
        size = np.exp(np.mean([np.log(a["size"] / b["size"]) for a, b in some]))
        ratio, spread = np.exp(logs.mean()), logs.std(ddof=1) / np.sqrt(len(logs))
        print(f"{name:12} {len(some):6} {ratio:15.3f} {spread:15.3f} {size:6.2f}")
    logs = np.log([a["rmse"] / b["rmse"] for a, b in pairs])
    sizes = np.log([a["size"] / b["size"] for a, b in pairs])
    print(f"all {len(pairs)} cases: errors {np.exp(logs.mean()):.3f}, ", end="")
    print(f"sizes {np.exp(sizes.mean()):.2f}, as geometric means of new / old")
    noisy = [pair for pair in pairs if pair[0]["table"] not in FRIEDMAN]
    shares = [np.mean([row[i]["within"] for row in noisy]) for i in (0, 1)]
    print(f"test rows within the {SHARE:.0%} intervals: {shares[0]:.1%}, before {shares[1]:.1%}")


def main() -> None:
    """Run the cases, and compare them or record them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    tables = dict(FRIEDMAN)
    if "HARFE_DATA" in os.environ:
        tables = UCI | REAL | FRIEDMAN
    cases = [(name, k) for name, n in tables.items() for k in range(n)]
    if options.only:
        cases = [case for case in cases if case[0] in options.only]
    rows = Parallel(options.jobs, batch_size=1)(delayed(run)(*case) for case in cases)
    if options.record:
        STORED.write_text(json.dumps(rows, indent=1) + "\n")
    else:
        compare(rows, json.loads(STORED.read_text()))


if __name__ == "__main__":
    main()
