"""Algorithm 1 in a dozen lines of NumPy against harfe: the paper's settings and rows.

    python benchmarks/textbook.py [--only housing speech] [--draws 5]

A dense transcription that shares no code with harfe. It draws features in its own loop, so draws
differ and only medians are comparable. Prints one line per dataset: the paper's number, then median
and range of the test MSE over the draws, for both. Needs HARFE_DATA (see
`harfe.datasets.load_real`). Single draws on propulsion differ by a factor of 30, so it gets more
draws.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from harfe.datasets import list_real, load_real
from harfe.metrics import mean_squared_error

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from experiments.paper.methods import Harfe
from experiments.problems import PaperRows

DRAWS = {"propulsion": 400}


def textbook_error(data: Bunch, seed: int) -> float:
    """Test error of the dense transcription."""
    rng = np.random.default_rng(seed)
    N, s, q, alpha = (data.paper[key] for key in ("N", "s", "q", "m_lambda"))
    m, d = data.X_train.shape
    W = np.zeros((d, N))
    for j in range(N):
        W[rng.choice(d, q, replace=False), j] = rng.uniform(-1, 1, q)
    b = rng.uniform(-1, 1, N)
    A = np.sin(data.X_train @ W + b)
    scale = np.sqrt(np.mean(A**2, axis=0))
    A /= scale
    c, seen = np.zeros(N), set()
    for _ in range(50):
        c_tilde = (1 - 0.1 * alpha) * c + 0.1 * A.T @ (data.y_train - A @ c) / m
        idx = np.sort(np.argsort(-np.abs(c_tilde))[:s])
        if idx.tobytes() in seen:
            break
        seen.add(idx.tobytes())
        A_S, c = A[:, idx], np.zeros(N)
        if s > m:
            v = np.linalg.solve(A_S @ A_S.T / m + alpha * np.eye(m), data.y_train)
            c[idx] = A_S.T @ v / m
        else:
            c[idx] = np.linalg.solve(A_S.T @ A_S / m + alpha * np.eye(s), A_S.T @ data.y_train / m)
    predicted = np.sin(data.X_test @ W + b) @ (c / scale)
    return mean_squared_error(data.y_test, predicted)


def harfe_error(data: Bunch, seed: int) -> float:
    """Test error of harfe with the settings of the experiment for the paper's Table 4."""
    fitted = Harfe("unit").fit(data.X_train, data.y_train, seed, data.paper)
    return mean_squared_error(data.y_test, fitted.model.predict(data.X_test))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = PaperRows().names()
    parser.add_argument("--only", nargs="+", default=names, choices=list_real())
    parser.add_argument("--draws", type=int, default=5, help="draws of the features (default 5)")
    options = parser.parse_args()
    print(f"{'dataset':12} {'paper':>9}  textbook (range)  harfe (range)  draws")
    for name in options.only:
        draws = DRAWS.get(name, options.draws)
        cells = []
        for error in (textbook_error, harfe_error):
            errors = []
            for seed in range(draws):
                errors.append(error(load_real(name, noise_seed=seed), seed))
            cells.append(f"{np.median(errors):9.4g} ({min(errors):.4g} .. {max(errors):.4g})")
        printed = load_real(name).paper_mse["HARFE"]
        print(f"{name:12} {printed:9.4g}  {'  '.join(cells)}  {draws}", flush=True)


if __name__ == "__main__":
    main()
