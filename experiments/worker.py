"""The work of a worker process: one task, measured on one thread.

Times are processor times, not wall-clock times: other work on the machine does not count.
Libraries are imported inside functions: thread limits must be set before they load.
"""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.config import Task
from experiments.methods import Adapter
from experiments.problems import Source
from experiments.results import Row

#: A method's seed is this plus the repetition. The repetition itself seeds the data, and the two
#: must not draw from equal streams.
METHOD_SEED = 1000
_LONGEST_FAILURE = 200


@dataclass(frozen=True)
class Job:
    """Everything that a worker needs for a task."""

    task: Task
    source: Source
    adapter: Adapter
    fingerprint: str
    keep_predictions: bool = False


def prepare() -> None:
    """Limit a new worker to one thread, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent is killed; otherwise it would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def measure(job: Job) -> Row:
    """Load the data, tune, fit and predict; a method that fails gives a row with its failure.

    Missing data or software is not a fault of the method: it raises an error and ends the run.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    task = job.task
    data = job.source.load(task.problem, task.repetition)
    seed = METHOD_SEED + task.repetition
    facts = (*task, job.fingerprint, seed, len(data.X_train), len(data.X_test))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # single grid points may not converge
        try:
            start = time.process_time()
            fitted = job.adapter.fit(data.X_train, data.y_train, seed=seed, paper=data.paper)
            fit_seconds = time.process_time() - start
            start = time.process_time()
            predicted = fitted.model.predict(data.X_test)
            predict_seconds = time.process_time() - start
            if fitted.seconds is not None:
                fit_seconds = fitted.seconds
            if not np.all(np.isfinite(predicted)):
                raise ValueError("predictions are not finite")
        except ImportError:
            raise
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            return Row(*facts, failure=text[:_LONGEST_FAILURE])
    clean = data.y_test_clean
    truth = data.y_test if clean is None else clean
    details = dict(fitted.details)
    if job.keep_predictions:
        details |= {"truth": _short_list(truth), "predicted": _short_list(predicted)}
    return Row(
        *facts,
        error=float(np.mean((predicted - data.y_test) ** 2)),
        error_clean=None if clean is None else float(np.mean((predicted - clean) ** 2)),
        error_relative=float(np.linalg.norm(predicted - truth) / np.linalg.norm(truth)),
        n_terms=fitted.n_terms,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        chosen=" ".join(f"{name}={_brief(value)}" for name, value in fitted.chosen.items()),
        details=json.dumps(details, separators=(",", ":")) if details else "",
    )


def _short_list(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _brief(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
