"""Draw the Pareto picture in characters, for terminals."""

from __future__ import annotations

from math import log10

from drawing.numbers import number, usd
from drawing.pareto import Pareto, Point, short

LOG_FROM = 10.0
"""Dearest ÷ cheapest cost from which the axis of dollars is logarithmic; `pareto.js` does alike."""
STAR, ALONE, MODEL, EXPECTED, MIX, TAIL, INTERVAL = "★", "☆", "●", "○", "·", "∘", "│"
"""Signs of the router, the router without plans, a measured model, an expected one, the mixes, the
router's path, and the interval of a quality.
"""
MARGIN = 7
"""Width of the left margin, in columns, where qualities are written."""


class _Canvas:
    def __init__(self, picture: Pareto, width: int, height: int) -> None:
        self._cells = [[" "] * width for _ in range(height)]
        stars = (picture.router, picture.alone)
        points = [*picture.models, *(one for one in stars if one is not None)]
        costs = [one.cost_usd for one in points if one.cost_usd > 0.0]
        costs += [cost for cost, _ in picture.tail if cost > 0.0]
        offs = [(one.quality, one.off or 0.0) for one in points]
        ends = [value for quality, off in offs for value in (quality - off, quality + off)]
        # No quality is outside, whatever its interval.
        qualities = [min(1.0, max(0.0, value)) for value in ends]
        qualities += [quality for _, quality in picture.tail]
        self.low, self.high = min(qualities), max(qualities)
        self.log = max(costs) >= LOG_FROM * min(costs)
        self.left, self.right = (min(costs) if self.log else 0.0), max(costs)

    def column(self, cost_usd: float) -> int:
        """Return the column of a cost; a free model stands at the left edge."""
        width = len(self._cells[0]) - 1
        if not self.log:
            return round(width * cost_usd / self.right)
        low, high = log10(self.left), log10(self.right)
        return round(width * (log10(max(cost_usd, self.left)) - low) / (high - low))

    def cost(self, column: int) -> float:
        """Return the cost at a column."""
        share = column / (len(self._cells[0]) - 1)
        if not self.log:
            return self.right * share
        return float(10.0 ** (log10(self.left) * (1.0 - share) + log10(self.right) * share))

    def row(self, quality: float) -> int:
        """Return the row of a quality, 0 at the top."""
        last = len(self._cells) - 1
        share = (quality - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return min(last, max(0, last - round(last * share)))

    def put(self, column: int, row: int, text: str, *, over: str = " ") -> bool:
        """Write a text if there is room, and tell whether there was."""
        cells = self._cells[row]
        end = column + len(text)
        if column < 0 or end > len(cells) or any(c not in over for c in cells[column:end]):
            return False
        cells[column:end] = text
        return True

    def mark(self, one: Point, sign: str) -> None:
        """Draw a point with its interval and its name beside it."""
        column, row = self.column(one.cost_usd), self.row(one.quality)
        for at in range(self.row(one.quality + (one.off or 0.0)), row):
            self.put(column, at, INTERVAL, over=f" {MIX}{TAIL}")
        for at in range(row + 1, self.row(one.quality - (one.off or 0.0)) + 1):
            self.put(column, at, INTERVAL, over=f" {MIX}{TAIL}")
        self.put(column, row, sign, over=f" {MIX}{TAIL}{INTERVAL}{MODEL}{EXPECTED}")

    def name(self, one: Point, text: str) -> None:
        """Write a name beside its point, on the first side that has room."""
        column, row = self.column(one.cost_usd), self.row(one.quality)
        last = len(self._cells) - 1
        for at in (row, row - 1, row + 1):
            for start, padded in ((column + 1, f" {text}"), (column - 1 - len(text), f"{text} ")):
                if 0 <= at <= last and self.put(start, at, padded, over=f" {MIX}"):
                    return

    def lines(self) -> list[str]:
        """Return the rows, with qualities at the top and at the bottom."""
        told = {0: number(self.high), len(self._cells) - 1: number(self.low)}
        return [
            f"{told.get(at, ''):>{MARGIN - 2}} ┤{''.join(cells).rstrip()}"
            for at, cells in enumerate(self._cells)
        ]


def plot(picture: Pareto, *, width: int = 64, height: int = 12) -> str:
    """Return the picture as lines of text; empty where no model has a cost.

    Args:
        width, height: characters of the plot itself.
    """
    if not any(one.cost_usd > 0.0 for one in picture.models):
        return ""
    canvas = _Canvas(picture, width, height)
    for at in range(width):
        if (mix := picture.mix_at(canvas.cost(at))) is not None:
            canvas.put(at, canvas.row(mix.quality), MIX)
    for cost, quality in picture.tail:
        canvas.put(canvas.column(cost), canvas.row(quality), TAIL, over=f" {MIX}")
    for one in picture.models:
        canvas.mark(one, MODEL if one.measured else EXPECTED)
    if picture.alone is not None:
        canvas.mark(picture.alone, ALONE)
    if picture.router is not None:
        canvas.mark(picture.router, STAR)
        canvas.name(picture.router, "this router")
    if picture.alone is not None:
        canvas.name(picture.alone, short(picture.alone.name))
    for one in picture.models:
        canvas.name(one, short(one.name))
    left, right = usd(canvas.left), usd(canvas.right)
    axis = f"{left}{'dollars a request':^{max(0, width - len(left) - len(right))}}{right}"
    return "\n".join([*canvas.lines(), f"{' ' * (MARGIN - 1)}└{'─' * width}", " " * MARGIN + axis])
