"""The settings of a pursuit as one value, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from harfe._core.arguments import check_alpha, check_count, is_number


@dataclass(frozen=True)
class PursuitSettings:
    """Settings of Algorithm 1; :func:`hard_ridge_pursuit` explains each.

    The defaults are the paper's.
    """

    n_nonzero_coefs: int
    alpha: float
    step_size: float | str = 0.1
    max_iter: int = 50
    tol: float = 1e-6
    noise_level: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for invalid values."""
        check_count("n_nonzero_coefs", self.n_nonzero_coefs, 50)
        check_alpha(self.alpha)
        step, tol, noise = self.step_size, self.tol, self.noise_level
        if isinstance(step, str):
            possible = step == "normalized"
        else:
            possible = is_number(step) and 0 < step < inf
        if not possible:
            raise ValueError(
                f"step_size={step!r} must be 'normalized' or a positive number, e.g. step_size=0.1"
            )
        check_count("max_iter", self.max_iter, 50)
        if not is_number(tol) or not 0 <= tol < inf:
            raise ValueError(f"tol={tol!r} must be a finite number >= 0, e.g. tol=1e-6")
        if noise is not None and not (is_number(noise) and 0 <= noise < inf):
            raise ValueError(
                f"noise_level={noise!r} must be None or a finite number >= 0, in units of y"
            )

    @property
    def mu(self) -> float:
        """The step μ as a number."""
        return 1 / (1 + self.alpha) if isinstance(self.step_size, str) else float(self.step_size)
