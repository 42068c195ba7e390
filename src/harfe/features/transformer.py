"""SparseRandomFeatures: random features as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harfe._core.arguments import check_count
from harfe._core.sklearn_compat import check_feature_names_in
from harfe._core.validation import check_inputs
from harfe.features.law import FeatureLaw
from harfe.features.mixed_law import Law, MixedLaw
from harfe.features.pool import FeaturePool


class SparseRandomFeatures(TransformerMixin, BaseEstimator):
    """Random features φ(<x, w_j> + b_j) of a few inputs each, as a transformer.

    The output is raw φ, neither centred nor scaled, of the inputs as given.

    Parameters
    ----------
    n_components : int, default=1000
        Number of features N.
    order : "auto", int or sequence of int, default="auto"
        Number of inputs per feature, q; a sequence gives a mixed pool with equal parts. "auto" is
        2, or 1 if there is only one input.
    activation : {"sin", "cos", "tanh", "sigmoid", "relu", "exp"}, default="sin"
        The function φ; "exp" is exp(i·), with complex output.
    weights : {"normal", "uniform"}, default="normal"
        Draw the weights from N(0, scale²) or U[-scale, scale].
    scale : float or array of shape (n_features,), default=1.0
        One scale for all inputs, or one for each.
    bias : {"phase", "uniform", "none"}, default="phase"
        Draw b_j from U[0, 2π] or from U[-1, 1], or use no bias.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of sets, default=None
        Which inputs may appear together in a feature, as in
        :class:`~sklearn.ensemble.HistGradientBoostingRegressor`: sets of column indices or names;
        columns in no set form another set. Sets smaller than `order` are drawn whole.
    variable_weights : array of shape (n_features,), default=None
        How often each input is drawn: a set of inputs has probability proportional to the product
        over its members. None draws all equally often.
    law : FeatureLaw or MixedLaw, default=None
        Draw from this law; the parameters that describe one are then ignored. A learned law
        (:func:`learn_law`) is for standardised inputs: put a
        :class:`~sklearn.preprocessing.StandardScaler` before this transformer.
    random_state : int, RandomState instance or None, default=None
        Equal seeds give equal features; a larger `n_components` extends the pool.

    Attributes
    ----------
    law_ : FeatureLaw
        The law drawn from.
    pool_ : FeaturePool
        The features, as index sets, values and phases.
    weights_ : scipy.sparse.csc_array of shape (n_features, n_components)
        The paper's W.
    bias_ : array of shape (n_components,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from harfe import SparseRandomFeatures
    >>> X = np.random.default_rng(0).uniform(size=(5, 3))
    >>> features = SparseRandomFeatures(n_components=2, random_state=0).fit(X)
    >>> features.transform(X).shape
    (5, 2)
    >>> features.weights_.shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int = 1000,
        *,
        order: Any = "auto",
        activation: str = "sin",
        weights: str = "normal",
        scale: Any = 1.0,
        bias: str = "phase",
        interaction_cst: Any = None,
        variable_weights: ArrayLike | None = None,
        law: Law | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.order = order
        self.activation = activation
        self.weights = weights
        self.scale = scale
        self.bias = bias
        self.interaction_cst = interaction_cst
        self.variable_weights = variable_weights
        self.law = law
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SparseRandomFeatures:
        """Draw the features for the columns of X; its rows do not matter.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_count("n_components", self.n_components, 1000)
        N = int(self.n_components)
        X = check_inputs(self, X, reset=True, dtype=(np.float64, np.float32))
        self.law_ = resolve_law(
            self.law,
            X.shape[1],
            order=self.order,
            weights=self.weights,
            scale=self.scale,
            bias=self.bias,
            activation=self.activation,
            interaction_cst=self.interaction_cst,
            variable_weights=self.variable_weights,
            names=getattr(self, "feature_names_in_", None),
        )
        self.pool_: FeaturePool = self.law_.draw(
            N, np.random.default_rng(seed_of(self.random_state))
        )
        self._n_features_out = N
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Evaluate the features.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
            float32 if X is, complex for exp features.
        """
        check_is_fitted(self, "pool_")
        X = check_inputs(self, X, reset=False, dtype=(np.float64, np.float32))
        return self.pool_.evaluate(X, X.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return names such as ``sin(0.31*age - 1.20*bmi + 0.50)``.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns, if X had none.

        Returns
        -------
        array of str of shape (n_components,)
        """
        check_is_fitted(self, "pool_")
        columns = check_feature_names_in(self, input_features)
        return np.array(self.pool_.names(columns), dtype=np.object_)

    @property
    def weights_(self) -> sp.csc_array:
        """The paper's W, a sparse array of shape (n_features, n_components)."""
        return self.pool_.weights()

    @property
    def bias_(self) -> NDArray[np.float64]:
        """The paper's b."""
        return self.pool_.phases

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def resolve_law(given: Any, n_variables: int, **settings: Any) -> Law:
    """Return the law that a user has given, checked, or the one that the settings describe.

    Parameters
    ----------
    given : FeatureLaw, MixedLaw or None
    n_variables : int
        Number of inputs.
    **settings
        Those of :meth:`FeatureLaw.from_settings`; they are used if `given` is None.
    """
    if given is None:
        return FeatureLaw.from_settings(n_variables, **settings)
    if not isinstance(given, FeatureLaw | MixedLaw):
        raise ValueError(
            f"law={given!r} must be None or a law, e.g. law=learn_law(X, y).law or "
            "law=FeatureLaw(n_variables=10, orders=(1, 2))"
        )
    if given.n_variables != n_variables:
        raise ValueError(
            f"law draws from {given.n_variables} inputs, but X has {n_variables}; pass a law "
            "for that many"
        )
    return given


def seed_of(random_state: Any) -> int:
    """Return the seed of the pool for any `random_state` that scikit-learn accepts."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
