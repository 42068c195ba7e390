"""The paper's data: its functions, order-q additive functions, and its eleven real datasets.

    y_k = f(x_k) + e_k,   k = 1, ..., n

`make_function` draws (x, y) for a function of the paper's synthetic tables, `make_additive` for a
random f of Definition 2.1, and `load_real` reads a real dataset as the paper prepared it. All three
return a `sklearn.utils.Bunch`.
"""

from harfe.datasets.real import list_real, load_real
from harfe.datasets.synthetic import (
    FUNCTIONS,
    AdditiveFunction,
    FunctionSpec,
    friedman1,
    friedman2,
    friedman3,
    inverse_norm,
    laplace_sum,
    make_additive,
    make_function,
    norm,
    ratio,
)

__all__ = [
    "FUNCTIONS",
    "AdditiveFunction",
    "FunctionSpec",
    "friedman1",
    "friedman2",
    "friedman3",
    "inverse_norm",
    "laplace_sum",
    "list_real",
    "load_real",
    "make_additive",
    "make_function",
    "norm",
    "ratio",
]
