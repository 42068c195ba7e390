"""Methods of a fitted estimator that write files: one-line calls to their parts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harfe.features.mixed_law import Law
from harfe.features.pool import FeaturePool
from harfe.model.expansion import Expansion
from harfe.model.pool_origin import PoolOrigin
from harfe.solvers.pursuit import StopReason


class Saving:
    """A fitted estimator as a file."""

    law_: Law
    seed_: int
    n_components_: int
    support_: NDArray[np.intp]
    expansion_: Expansion
    # All N features of a fit; None in a loaded model, which has their origin instead.
    _drawn: FeaturePool | None
    _pool_origin: PoolOrigin
    # By name: an Enum is more than files of skops hold.
    _stop_reason: str

    def save(self, path: str | os.PathLike[str], *, meta: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`harfe.load` reads; see :func:`harfe.save`.

        Parameters
        ----------
        path : str or path
            Usually ``something.harfe``. A file that is there is replaced, all at once.
        meta : dict, optional
            Plain data on where the model comes from.
        """
        from harfe.files import save

        save(self, path, meta=meta)

    def to_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        dtype: str = "float64",
        terms: bool = False,
    ) -> Any:
        """Write the fitted function as an ONNX graph; see :func:`harfe.files.onnx.to_onnx`.

        Parameters
        ----------
        path : str or path, optional
            File to write.
        dtype : {"float64", "float32"}, default="float64"
            Of input, numbers in between and outputs.
        terms : bool, default=False
            Also have an output ``terms``, of the shape that `eval_terms` gives.

        Returns
        -------
        onnx.ModelProto
            With the input ``X`` and the output ``prediction``.
        """
        from harfe.files.onnx import to_onnx

        return to_onnx(self, path, dtype, terms)

    @property
    def _pool(self) -> FeaturePool:
        """All N features; a loaded model draws them again when they are first needed."""
        if self._drawn is None:
            drawn = self._pool_origin.draw(self.law_, self.n_components_, self.seed_)
            # The kept ones are known whatever was drawn.
            self._drawn = drawn.replaced(self.support_, self.expansion_.features)
        return self._drawn

    @property
    def stop_reason_(self) -> StopReason:
        """Why the pursuit ended; its value is advice."""
        return StopReason[self._stop_reason]
