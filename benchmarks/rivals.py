"""Every method of the registry: seconds to choose its settings and fit, and error on Friedman 1.

    python benchmarks/rivals.py                    all installed methods
    python benchmarks/rivals.py --only srfe salsa

Two tables in one: time on 500 rows × 20 inputs (Friedman's function with fifteen irrelevant
inputs), on one thread; and the noise-free error on Friedman 1 with 200 training rows and noise 1,
over several draws, with the limit that only broken code exceeds (the mean predictor has 24). Every
method tunes itself on the training rows, as in `harfe compare`.
"""

import argparse
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from harfe.compare.methods import METHODS, named
from harfe.datasets import make_function

#: Largest error a method may have in any draw; third-party methods have no limit.
LIMITS = {
    "srfe": 6.0,
    "shrimp": 6.0,
    "ssam": 6.0,
    "anova": 6.0,
    "salsa": 5.0,
    "kam": 5.0,
    "spam": 5.0,
    "cosso": 5.0,
    "rfrr": 8.0,
    "yen": 8.0,
}
ROWS, INPUTS = 500, 20
SECONDS = 120


def seconds_to_fit(name: str) -> tuple[float, int | None]:
    """Wall-clock seconds to choose settings and fit, and the size of the model."""
    data = make_function("friedman1", ROWS, random_state=0, n_features=INPUTS)
    model = METHODS[name].make(0, ROWS)
    begun = time.perf_counter()
    model.fit(data.X, data.y)
    return time.perf_counter() - begun, METHODS[name].size(model)


def noise_free_errors(name: str, draws: int) -> list[float]:
    """Mean squared errors against the function itself, on 1000 new rows of every draw."""
    errors = []
    for draw in range(draws):
        data = make_function("friedman1", 1200, random_state=draw)
        model = METHODS[name].make(draw, 200).fit(data.X[:200], data.y[:200])
        errors.append(float(np.mean((model.predict(data.X[200:]) - data.y_clean[200:]) ** 2)))
    return errors


def main() -> None:
    """Print one line per method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=["all"], metavar="METHOD")
    parser.add_argument("--draws", type=int, default=5, help="draws of Friedman 1 (default 5)")
    options = parser.parse_args()
    print(f"| method | {ROWS} × {INPUTS}: seconds | size | Friedman 1: mean error | max | limit |")
    print("|---|---|---|---|---|---|")
    for name in named(options.only):
        # The first call compiles, which should not count.
        tiny = make_function("friedman1", 30, random_state=0)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name != "harfe":
                METHODS[name].make(0, 30).fit(tiny.X, tiny.y)
            seconds, size = seconds_to_fit(name)
            errors = noise_free_errors(name, options.draws)
        limit = LIMITS.get(name)
        slow = " (too slow)" if seconds > SECONDS else ""
        high = " (too high)" if limit is not None and max(errors) > limit else ""
        print(
            f"| {name} | {seconds:.2g}{slow} | {size if size is not None else '-'} | "
            f"{np.mean(errors):.3g} | {max(errors):.3g}{high} | "
            f"{'-' if limit is None else f'{limit:g}'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
