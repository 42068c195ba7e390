"""Compare methods on the user's own data: a registry of methods and a league table."""

from harfe.compare.league import compare_methods
from harfe.compare.methods import METHODS, Method, named

__all__ = ["METHODS", "Method", "compare_methods", "named"]
