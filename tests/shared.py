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
