"""Geometry of the drawings on a report page, which the template `chart` turns into SVG.

Colours are CSS classes, with a light and a dark version. A drawing also records where its values
lie, so that the page can show the value under the pointer.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from harfe.report.page.text import number

# Width of a digit in a label.
_DIGIT = 6.7
_LINE = 15

# Blue for less, orange for more: colour-blind readers can distinguish them, on light and dark.
LESS, MORE = (38, 132, 200), (226, 114, 28)


@dataclass(frozen=True)
class Axis:
    """An axis from low to high, linear or logarithmic."""

    low: float
    high: float
    label: str = ""
    log: bool = False

    @classmethod
    def around(
        cls, values: Sequence[float], label: str = "", *, log: bool = False, pad: float = 0.04
    ) -> Axis:
        """Return an axis that holds all values, with some margin."""
        known = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        if log:
            a, b = math.log10(low), math.log10(high)
            room = pad * (b - a) or 0.5
            return cls(10 ** (a - room), 10 ** (b + room), label, True)
        room = pad * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low - room, high + room, label)

    def place(self, value: float) -> float:
        """Map a value to the position from 0 at the lower end to 1 at the upper."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(value) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, count: int = 5) -> list[float]:
        """Return round numbers between the ends."""
        return self._log_ticks(count) if self.log else _round_steps(self.low, self.high, count)

    def _log_ticks(self, count: int) -> list[float]:
        a, b = math.log10(self.low), math.log10(self.high)
        powers = range(math.floor(a), math.ceil(b) + 1)
        if b - a < 0.7:
            ticks = _round_steps(self.low, self.high, count)
        elif b - a < 2.5:
            ticks = [f * 10.0**p for p in powers for f in (1, 2, 5)]
        else:
            skip = max(1, math.ceil((b - a) / count))
            ticks = [10.0**p for p in powers if p % skip == 0]
        return [tick for tick in ticks if self.low <= tick <= self.high]


def _round_steps(low: float, high: float, count: int) -> list[float]:
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = min((f * power for f in (1, 2, 2.5, 5, 10)), key=lambda f: abs(math.log(f / rough)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


@dataclass
class Drawing:
    """Axes and the shapes between them, as attributes of SVG elements.

    Attributes
    ----------
    x, y : Axis
    title : str
        Text for screen readers.
    hover : dict
        Data that the page needs to show values.
    width, height : float
        Of the whole drawing, in its own units.
    image : dict or None
        Background: the attributes of the picture and of the frame that clips it.
    paths : list of (class, path)
    """

    x: Axis
    y: Axis
    title: str
    hover: dict[str, Any] = field(default_factory=dict)
    width: float = 440.0
    height: float = 290.0
    n_ticks: int = 5
    image: dict[str, dict[str, str]] | None = None
    paths: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        widest = max((len(number(t)) for t in self.y.ticks(self.n_ticks)), default=1)
        self.left = widest * _DIGIT + 12
        self.top = 24.0 if self.y.label else 8.0
        self.inner_width = self.width - self.left - 14
        self.inner_height = self.height - self.top - (44 if self.x.label else 26)
        self.right, self.bottom = self.left + self.inner_width, self.top + self.inner_height

    def at(self, x: float, y: float) -> tuple[str, str]:
        """Return the coordinates of a point as short text."""
        return (
            short(self.left + self.inner_width * self.x.place(x)),
            short(self.top + self.inner_height * (1 - self.y.place(y))),
        )

    def dots(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> None:
        """Draw a dot at every point, as one path of zero-length strokes."""
        marks = ("M{} {}h0".format(*self.at(x, y)) for x, y in zip(xs, ys, strict=True))
        self.paths.append((f"dots {kind}", "".join(marks)))

    def line(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> None:
        """Draw a line through points."""
        steps = "L".join(" ".join(self.at(x, y)) for x, y in zip(xs, ys, strict=True))
        self.paths.append((f"line {kind}", f"M{steps}"))

    def band(
        self, xs: Sequence[float], lower: Sequence[float], upper: Sequence[float], kind: str
    ) -> None:
        """Draw the area between two lines, clipped to the axis."""
        lower, upper = ([min(max(y, self.y.low), self.y.high) for y in ys] for ys in (lower, upper))
        there = [self.at(x, y) for x, y in zip(xs, upper, strict=True)]
        back = [self.at(x, y) for x, y in zip(xs, lower, strict=True)][::-1]
        steps = "L".join(" ".join(point) for point in [*there, *back])
        self.paths.append((f"band {kind}", f"M{steps}Z"))

    def columns(self, edges: Sequence[float], heights: Sequence[float], kind: str) -> None:
        """Draw columns from zero between edges."""
        steps = []
        for (left, right), height in zip(pairwise(edges), heights, strict=True):
            (x0, y0), (x1, y1) = self.at(left, 0.0), self.at(right, height)
            steps.append(f"M{x0} {y0}V{y1}H{x1}V{y0}Z")
        self.paths.append((f"area {kind}", "".join(steps)))

    def rug(self, xs: Sequence[float]) -> None:
        """Draw ticks on the lower edge."""
        places = dict.fromkeys(self.at(x, self.y.low)[0] for x in xs)
        self.paths.append(("rug", "".join(f"M{x} {short(self.bottom)}v-5" for x in places)))

    def vertical(self, x: float) -> None:
        """Draw a line from the lower to the upper edge."""
        place, _ = self.at(x, self.y.low)
        self.paths.append(("guide", f"M{place} {short(self.top)}V{short(self.bottom)}"))

    def horizontal(self, y: float) -> None:
        """Draw a line from the left to the right edge."""
        _, place = self.at(self.x.low, y)
        self.paths.append(("guide", f"M{short(self.left)} {place}H{short(self.right)}"))

    def picture(self, values: Sequence[Sequence[float]], limit: float) -> None:
        """Draw a map of values[x][y] with its outer points on the edges."""
        rows = [list(row) for row in zip(*values, strict=True)][::-1]
        # Twice as fine, because not every printer smooths a picture.
        rows = _finer([_finer(row) for row in rows])
        w, h = self.inner_width, self.inner_height
        dx, dy = w / (len(rows[0]) - 1), h / (len(rows) - 1)
        self.image = {
            "frame": _box(self.left, self.top, w, h),
            "picture": _box(-dx / 2, -dy / 2, w + dx, h + dy) | {"href": png(rows, limit)},
        }

    @property
    def grid(self) -> str:
        """Horizontal lines at the ticks of y, as a path."""
        places = (self.at(self.x.low, tick)[1] for tick in self.y.ticks(self.n_ticks))
        return "".join(f"M{short(self.left)} {y}H{short(self.right)}" for y in places)

    @property
    def labels(self) -> list[tuple[str, str, str, str]]:
        """Texts at the axes: x, y, class and text of each."""
        texts = [
            (short(self.left - 6), self.at(self.x.low, tick)[1], "end", number(tick))
            for tick in self.y.ticks(self.n_ticks)
        ]
        reach = -math.inf
        for tick in self.x.ticks(self.n_ticks):
            x, _ = self.at(tick, self.y.low)
            half = len(number(tick)) * _DIGIT / 2
            # Labels that would touch the previous one are left out.
            if float(x) - half > reach and float(x) + half < self.width:
                reach = float(x) + half + 4
                texts.append((x, short(self.bottom + _LINE + 2), "middle", number(tick)))
        if self.x.label:
            middle, below = short((self.left + self.right) / 2), short(self.height - 7)
            texts.append((middle, below, "middle label", shortened(self.x.label, self.width)))
        if self.y.label:
            texts.append(("2", "12", "label", shortened(self.y.label, self.width)))
        return texts

    @property
    def axis(self) -> str:
        """Lower edge, drawn on top of everything else, as a path."""
        return f"M{short(self.left)} {short(self.bottom)}H{short(self.right)}"

    @property
    def reading(self) -> dict[str, Any]:
        """Positions of values, for the page's cursor."""
        frame = [self.left, self.top, self.inner_width, self.inner_height]
        return {
            **self.hover,
            "frame": [round(value, 2) for value in frame],
            "axes": [[axis.low, axis.high, axis.log] for axis in (self.x, self.y)],
        }


def shortened(text: str, width: float) -> str:
    """Shorten text to fit a width."""
    most = int(width / _DIGIT)
    return text if len(text) <= most else text[: most - 1] + "…"


def opacity(size: float) -> float:
    """Return the opacity of a colour; weak ones are raised to stay visible on dark backgrounds."""
    return float(min(max(size, 0.0), 1.0) ** 0.75)


def _finer(values: Sequence[Any]) -> list[Any]:
    """Insert the mean between neighbouring values, or rows of values."""
    out = [values[0]]
    for before, after in pairwise(values):
        if isinstance(after, list):
            out.append([(a + b) / 2 for a, b in zip(before, after, strict=True)])
        else:
            out.append((before + after) / 2)
        out.append(after)
    return out


def png(rows: Sequence[Sequence[float]], limit: float) -> str:
    """Return a data URL of a picture of numbers: colour by sign, opacity by size."""
    height, width = len(rows), len(rows[0])
    raw = bytearray()
    for row in rows:
        # Store each pixel as the difference from its left neighbour, which compresses far better.
        raw.append(1)
        before = (0, 0, 0, 0)
        for value in row:
            size = opacity(abs(value) / limit) if limit > 0 else 0.0
            pixel = (*(MORE if value > 0 else LESS), round(255 * size))
            raw += bytes((a - b) % 256 for a, b in zip(pixel, before, strict=True))
            before = pixel
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(raw), 9)),
        (b"IEND", b""),
    ]
    out = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        check = zlib.crc32(kind + data)
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
    return "data:image/png;base64," + base64.b64encode(out).decode()


def _box(x: float, y: float, width: float, height: float) -> dict[str, str]:
    return {"x": short(x), "y": short(y), "width": short(width), "height": short(height)}


def short(value: float) -> str:
    """Format a coordinate with the visible digits only."""
    return f"{value:.1f}".removesuffix(".0")
