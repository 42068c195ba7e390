"""Figures of fitted models, in the style of scikit-learn's displays.

Every display holds plain numbers, which ``table()`` returns; ``from_estimator`` takes them from a
fitted model, ``plot(ax=None)`` draws them and sets ``ax_`` (or ``axes_``) and ``figure_``. Only
``plot`` needs matplotlib: ``pip install "harfe[plot]"``.
"""

from harfe.display.components.component import ComponentDisplay
from harfe.display.components.components import ComponentsDisplay
from harfe.display.convergence import ConvergenceDisplay
from harfe.display.histogram import VariableHistogramDisplay
from harfe.display.importance import TermImportanceDisplay
from harfe.display.interactions import InteractionDisplay
from harfe.display.parity import ParityDisplay
from harfe.display.sparsity_path import SparsityPathDisplay
from harfe.display.waterfall import WaterfallDisplay

__all__ = [
    "ComponentDisplay",
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "InteractionDisplay",
    "ParityDisplay",
    "SparsityPathDisplay",
    "TermImportanceDisplay",
    "VariableHistogramDisplay",
    "WaterfallDisplay",
]
