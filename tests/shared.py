"""Truths and helpers that several test modules use."""

import json
import os
import subprocess
import sys

import numpy as np

#: Every activation in plain NumPy.
FORMULAS = {
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "relu": lambda z: np.maximum(z, 0),
    "exp": lambda z: np.exp(1j * z),
}

# In a process of its own: SCIPY_ARRAY_API must be set before scipy is imported, or the checks of
# array libraries skip silently.
_CHECKS = """
import json
from sklearn.utils.estimator_checks import check_estimator
import harfe
results = check_estimator(harfe.{estimator}, on_skip=None, on_fail=None)
rows = [(r["check_name"], r["status"], repr(r["exception"])) for r in results]
print("RESULTS" + json.dumps(rows))
"""


def estimator_checks(estimator):
    """(name, status, exception) of every check of scikit-learn, with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CHECKS.format(estimator=estimator)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULTS")[2])


def correlated(seed, m=120, N=200, s=5, noise=0.01, rho=0.9):
    """Neighbouring columns correlate by rho; s of them, far apart, make y."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, N))
    for j in range(1, N):
        A[:, j] = rho * A[:, j - 1] + np.sqrt(1 - rho**2) * A[:, j]
    S = np.sort(rng.choice(N // 10, s, replace=False)) * 10 + 4
    y = A[:, S] @ (rng.choice([-1, 1], s) * rng.uniform(1, 2, s)) + noise * rng.normal(size=m)
    return A, y, S
