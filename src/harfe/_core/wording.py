"""Shares and counts as text, formatted the same everywhere in harfe."""

from __future__ import annotations


def percent(share: float, places: int = 1) -> str:
    """Format a share as a percentage: ``24.1 %``, or ``< 0.1 %`` if it would round to zero.

    Parameters
    ----------
    share : float
        1 is 100 %.
    places : int, default=1
        Decimals.

    Examples
    --------
    >>> percent(0.2406), percent(0.0001), percent(0.25, places=0)
    ('24.1 %', '< 0.1 %', '25 %')
    """
    value, smallest = 100 * float(share), 10.0**-places
    if value == 0:
        return "0 %"
    if abs(value) < smallest / 2:
        return f"< {smallest:.{places}f} %"
    return f"{value:.{places}f} %"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Format a count with its noun.

    Parameters
    ----------
    count : int
    noun : str
        Singular.
    nouns : str, default=""
        Plural, if it is not the singular with an "s".

    Examples
    --------
    >>> plural(1, "row"), plural(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"
