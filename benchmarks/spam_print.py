"""Whether the paper's SpAM numbers look like fits: where our path reaches the printed error.

    python benchmarks/spam_print.py [--only housing speech]     needs the data, see HARFE_DATA

On the paper's rows, with six splines per input: the penalty decreases from the largest, at which
only the mean is left. Printed: the first share of it at which the test error is at most that of the
paper, with the number of inputs in use there; also the error of the mean, of our choice by
cross-validation on training rows, and of plain lasso. Test rows are used along the way, but only to
check a published number, not to choose anything.
"""

import argparse
import warnings

import numpy as np

from harfe.compare.methods import METHODS
from harfe.datasets import load_real
from harfe.rivals import SpAMRegressor

PRINTED = {
    "propulsion": 1.1121,
    "galaxy": 0.9542,
    "skillcraft": 0.9055,
    "airfoil": 0.9623,
    "forestfire": 0.9694,
    "housing": 0.8165,
    "music": 0.7683,
    "insulin": 1.2035,
    "speech": 0.6600,
    "telemonitor": 0.8643,
    "ccpp": 0.0647,
}
SHARES = np.geomspace(1.0, 0.01, 120)


def main() -> None:
    """Print one line per dataset."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PRINTED, default=list(PRINTED))
    print("| dataset | printed | mean | printed / mean | share of λ_max | inputs | ours | lasso |")
    print("|---|---|---|---|---|---|---|---|")
    for name in parser.parse_args().only:
        data = load_real(name)
        null = float(np.mean((data.y_test - data.y_train.mean()) ** 2))
        where = "not reached"
        inputs = "-"
        for share in SHARES:
            model = SpAMRegressor(n_basis=6, alpha=float(share)).fit(data.X_train, data.y_train)
            if _error(model, data) <= PRINTED[name]:
                where, inputs = f"{share:.2f}", str(len(model.selected_))
                break
        ours = SpAMRegressor(random_state=0).fit(data.X_train, data.y_train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lasso = METHODS["lasso"].make(0, len(data.y_train)).fit(data.X_train, data.y_train)
        print(
            f"| {name} | {PRINTED[name]:.4g} | {null:.4g} | {PRINTED[name] / null:.2f} | {where} | "
            f"{inputs} | {_error(ours, data):.3g} | {_error(lasso, data):.3g} |",
            flush=True,
        )


def _error(model: object, data: object) -> float:
    predicted = model.predict(data.X_test)  # type: ignore[attr-defined]
    return float(np.mean((predicted - data.y_test) ** 2))  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
