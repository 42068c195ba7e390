"""Sets of variables within one feature: only on these can components be non-zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harfe.features.pool import FeaturePool
from harfe.model.terms import IndexSet, feature_sets

# Most subsets of variables, summed over all features.
_MOST_SUBSETS = 2**18


@dataclass(frozen=True)
class Members:
    """Features that contribute to a component.

    Attributes
    ----------
    features : int array
        Their places, ascending.
    masks : int array
        Bit p is set if the variable ``indices[feature, p]`` belongs to the component.
    """

    features: NDArray[np.intp]
    masks: NDArray[np.intp]

    def among(self, places: NDArray[np.intp]) -> Members:
        """Restrict to the features at these places."""
        inside = np.isin(self.features, places)
        return Members(self.features[inside], self.masks[inside])


def members_of(features: FeaturePool) -> dict[IndexSet, Members]:
    """All non-empty sets of variables within one feature; fewer variables first, then by number.

    Raises ValueError if the features have too many subsets of variables.
    """
    _check_number(features)
    found: dict[IndexSet, tuple[list[int], list[int]]] = {}
    for j, (indices, present) in enumerate(zip(features.indices, features.present, strict=True)):
        subsets: list[tuple[IndexSet, int]] = [((), 0)]
        for place in np.flatnonzero(present).tolist():
            k = int(indices[place])
            subsets += [(tuple(sorted((*u, k))), mask | 1 << place) for u, mask in subsets]
        for u, mask in subsets[1:]:
            places, masks = found.setdefault(u, ([], []))
            places.append(j)
            masks.append(mask)
    return {
        u: Members(np.array(found[u][0], dtype=np.intp), np.array(found[u][1], dtype=np.intp))
        for u in sorted(found, key=lambda u: (len(u), u))
    }


def subsets_of(u: IndexSet) -> list[IndexSet]:
    """All subsets, the empty one first, each ascending."""
    subsets: list[IndexSet] = [()]
    for k in u:
        subsets += [(*v, k) for v in subsets]
    return subsets


def _check_number(features: FeaturePool) -> None:
    orders = [len(u) for u in feature_sets(features)]
    # Exponents first: for thousands of variables, 2**order is too large to sum.
    if orders and (max(orders) > 30 or sum(2**order for order in orders) > _MOST_SUBSETS):
        raise ValueError(
            f"{len(features)} features with up to {max(orders)} inputs have more than "
            f"{_MOST_SUBSETS} subsets of inputs, one component each; fit with a lower order, "
            "e.g. order=3, or fewer features"
        )
