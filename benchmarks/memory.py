"""Peak memory of a fit beyond that of the warmed-up process, against the size of A.

    python benchmarks/memory.py

Each case runs in its own process. Stored: at most 1.3 times A plus 200 MB for s <= N/10.
Recomputed (a small memory budget): far below A, whatever N.
"""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import resource, sys, warnings
import numpy as np
from harfe import HARFERegressor
m, N, s, budget = map(float, sys.argv[1:])
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (int(m), 20))
y = np.sin(3 * X[:, 0] * X[:, 1]) + X[:, 2] + rng.normal(size=int(m)) / 10
HARFERegressor(100, 5, random_state=0).fit(X[:200], y[:200])  # compile before measuring
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
HARFERegressor(int(N), int(s), max_iter=5, memory_budget=budget, random_state=0).fit(X, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
CASES = [
    (1000, 10_000, 500, 1e12),
    (5000, 20_000, 2000, 1e12),
    (750, 80_000, 5000, 1e12),
    (5000, 20_000, 2000, 3e8),
    (200_000, 10_000, 300, 3e8),
]


def main() -> None:
    """Print one line per case."""
    print(f"{'rows':>8} {'N':>7} {'s':>6} {'home':>11} {'A':>9} {'increase':>9}  allowed")
    for m, N, s, budget in CASES:
        arguments = [str(value) for value in (m, N, s, budget)]
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=True
        )
        size, increase = m * N * 8 / 1e6, float(done.stdout) / 1e6
        stored = budget > size * 1e6
        allowed = 1.3 * size + 200 if stored else budget / 1e6
        print(
            f"{m:8} {N:7} {s:6} {'stored' if stored else 'recomputed':>11} {size:6.0f} MB "
            f"{increase:6.0f} MB  {allowed:.0f} MB {'ok' if increase <= allowed else 'EXCEEDED'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
