"""Methods of a fitted estimator that write files: thin calls to `harfe.files`."""

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
    """Write a fitted estimator to a file, and draw its pool again once loaded."""

    law_: Law
    seed_: int
    n_components_: int
    support_: NDArray[np.intp]
    expansion_: Expansion
    # All N features of a fit; None in a loaded model, which has their origin instead.
    _drawn: FeaturePool | None
    _pool_origin: PoolOrigin
    # By name: skops files cannot hold an Enum.
    _stop_reason: str

    def save(self, path: str | os.PathLike[str], *, meta: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`harfe.load` reads; see :func:`harfe.save`.

        Parameters
        ----------
        path : str or path
            Usually ``something.harfe``. An existing file is replaced atomically.
        meta : dict, optional
            Plain data about the origin of the model.
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
            Type of the input, the intermediate values and the outputs.
        terms : bool, default=False
            Add an output ``terms`` of the same shape as the result of `eval_terms`.

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
            # The kept features are stored: use them even if others were drawn.
            self._drawn = drawn.replaced(self.support_, self.expansion_.features)
        return self._drawn

    @property
    def stop_reason_(self) -> StopReason:
        """Why the pursuit stopped; its value is advice."""
        return StopReason[self._stop_reason]
