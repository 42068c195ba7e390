"""How fast `harfe predict` streams: rows per second from a file, against the sines alone.

    python benchmarks/streaming.py [--rows 2000000] [--repeat 3]

The model has s = 100 sines of two of 20 inputs; the command runs in this process, from opening the
model to the last byte of the output. Measured: Parquet to Parquet, Parquet to CSV, and CSV to CSV
(a tenth of the rows) with pyarrow and as if it were not installed; the last line is their ratio.
"Sines alone" is s sines per row: by NumPy on one thread, the cost in a plain program, and by our
compiled loop on all threads, the unavoidable cost. Goals: 200 000 rows per second from Parquet, at
most 3 times NumPy's sines; CSV at least 5 times faster with pyarrow than without.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harfe import HARFERegressor
from harfe._core.threads import n_threads
from harfe.cli.main import main as harfe
from harfe.features import kernels
from harfe.tables import TableModel

S, D = 100, 20
_BLOCK = 2048


def best(work: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of several runs, after a warm-up run."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def save_model(path: Path, names: list[str]) -> None:
    """Fit s sines of two inputs to a table of 1000 rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, D))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * X[:, 2] ** 2 + rng.normal(size=1000)
    table = {**dict(zip(names, X.T, strict=True)), "y": y}
    TableModel.fit(table, "y", HARFERegressor(2000, S, order=2, random_state=0)).save(path)


def write_table(path: Path, names: list[str], rows: int) -> None:
    """Write a Parquet file in row groups, so that memory does not limit its size."""
    rng = np.random.default_rng(1)
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, compression="snappy") as file:
        for start in range(0, rows, 1 << 17):
            X = rng.uniform(-1, 1, (D, min(1 << 17, rows - start)))
            file.write_table(pa.table(list(X), names=names))


def write_csv(path: Path, names: list[str], rows: int) -> None:
    """Write such a table as CSV, with 6 digits per number."""
    X = np.random.default_rng(2).uniform(-1, 1, (rows, D))
    with open(path, "w") as file:
        file.write(",".join(names) + "\n")
        np.savetxt(file, X, "%.6g", ",")


def stream(model: Path, data: Path, output: Path) -> None:
    """Run the command as a user would."""
    with contextlib.redirect_stderr(io.StringIO()):
        code = harfe(["predict", str(model), str(data), "-o", str(output), "--force"])
    if code:
        raise SystemExit(f"harfe predict failed with exit code {code}")


def sines(repeat: int) -> tuple[float, float]:
    """Seconds per row of s sines: NumPy's on one thread, ours on all."""
    rng = np.random.default_rng(3)
    arguments = rng.uniform(-5, 5, (_BLOCK, S))
    plain = best(lambda: np.sin(arguments), 20 * repeat) / _BLOCK
    block = rng.uniform(-5, 5, (D, _BLOCK))
    one = np.tile(np.arange(D, dtype=np.intp), S // D)[:, None]
    out = np.empty((S, _BLOCK))
    given = (block, np.abs(block).max(axis=1), one, np.ones((S, 1)), np.zeros(S), 0, 0, out)
    ours = best(lambda: kernels.features(*given), 20 * repeat) / _BLOCK / n_threads()
    return plain, ours


def main() -> None:
    """Print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    plain, ours = sines(options.repeat)
    print(
        f"sines alone, s = {S}: {plain * 1e6:.2f} µs per row by NumPy on one thread, "
        f"{ours * 1e6:.3f} µs compiled on {n_threads()} threads"
    )
    names = [f"x{j}" for j in range(D)]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        model, parquet, text = home / "m.harfe", home / "in.parquet", home / "in.csv"
        save_model(model, names)
        write_table(parquet, names, options.rows)
        write_csv(text, names, options.rows // 10)
        reading = best(lambda: [None for _ in pq.ParquetFile(parquet).iter_batches(1 << 16)], 1)
        print(f"decoding the Parquet file alone: {reading / options.rows * 1e6:.2f} µs per row")
        rates = []
        for data, output, rows, hidden in (
            (parquet, "out.parquet", options.rows, {}),
            (parquet, "out.csv", options.rows, {}),
            (text, "out.csv", options.rows // 10, {}),
            (text, "out.csv", options.rows // 10, {"harfe.tables.readers.arrow_csv": None}),
        ):
            with mock.patch.dict(sys.modules, hidden):
                seconds = best(lambda d=data, o=output: stream(model, d, home / o), options.repeat)
            each = seconds / rows
            rates.append(rows / seconds)
            print(
                f"{data.suffix[1:]:7} to {output.partition('.')[2]:7}: {rows / seconds:9.0f} rows "
                f"per second, {each * 1e6:.2f} µs per row; {each / plain:.2f} times NumPy's sines, "
                f"{each / ours:.1f} times compiled sines{'; without pyarrow' if hidden else ''}"
            )
        print(f"CSV to CSV: {rates[2] / rates[3]:.1f} times as fast with pyarrow as without")


if __name__ == "__main__":
    main()
