"""Drawings of fitted models, in the manner of scikit-learn's displays.

Every display holds plain numbers, which ``table()`` gives back; ``from_estimator`` takes them from
a fitted model, ``plot(ax=None)`` draws them and sets ``ax_`` (or ``axes_``) and ``figure_``. Only
``plot`` needs matplotlib: ``pip install "harfe[plot]"``.
"""

from harfe.display.histogram import VariableHistogramDisplay
from harfe.display.importance import InteractionDisplay, TermImportanceDisplay

__all__ = ["InteractionDisplay", "TermImportanceDisplay", "VariableHistogramDisplay"]
