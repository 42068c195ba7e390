"""Methods of a fitted estimator that write files: one-line calls to their parts."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from harfe.mixed_law import Law
from harfe.pool import FeaturePool
from harfe.pool_origin import PoolOrigin


class Saving:
    """A fitted estimator as a file."""

    law_: Law
    seed_: int
    n_components_: int
    _pool_origin: PoolOrigin

    def save(self, path: str | os.PathLike[str], *, meta: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`harfe.load` reads; see :func:`harfe.save`.

        Parameters
        ----------
        path : str or path
            Usually ``something.harfe``. A file that is there is replaced, all at once.
        meta : dict, optional
            Plain data on where the model comes from.
        """
        from harfe.persist import save

        save(self, path, meta=meta)

    @cached_property
    def _pool(self) -> FeaturePool:
        """All N features: a fit sets them, a loaded model draws them again when asked."""
        return self._pool_origin.draw(self.law_, self.n_components_, self.seed_)
