"""Line charts as inline SVG: no script, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = tuple(f"var(--line-{number})" for number in range(10))
"""As the style sheet has them, for light and for dark."""
WIDTH, HEIGHT = 960, 250
LEFT, RIGHT, TOP, BOTTOM = 84, 14, 30, 32


@dataclass(frozen=True, slots=True)
class Line:
    """One line: name, colour, points; a None leaves a hole."""

    name: str
    colour: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A vertical rule with a label, and the number by which the text speaks of it; or an alert's
    tick at the bottom.
    """

    x: float
    label: str
    colour: str = "var(--quiet)"
    tick: bool = False
    number: int | None = None


class Axes:
    """Maps values into the picture; the scale starts at 0 and ends at a round number."""

    def __init__(self, *, x_max: float, y_max: float) -> None:
        self.x_max = max(x_max, 1.0)
        self.y_step, self.y_max = _nice(y_max)

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_max

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - min(max(value, 0.0), self.y_max) / self.y_max)


def chart(
    title: str,
    lines: Sequence[Line],
    rules: Sequence[Rule],
    *,
    x_max: float,
    y_max: float | None = None,
    level: float | None = None,
) -> str:
    """Return a chart as an SVG element.

    Args:
        level: draws a dashed horizontal line there.
        y_max: where the scale ends; None: where the values do, outliers above 6 times the median
        left aside.
    """
    values = sorted(
        y for line in lines for _, y in line.points if y is not None and math.isfinite(y)
    )
    highest = _highest(values) if y_max is None else y_max
    axes = Axes(x_max=x_max, y_max=max(highest, level or 0.0))
    parts = [
        (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(title, quote=True)}">'
        ),
        f'<text x="{LEFT}" y="15" class="title">{escape(title)}</text>',
        *_grid(axes),
        *(_rule(axes, rule) for rule in rules),
    ]
    if level is not None:
        y = axes.y(level)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="level"/>'
        )
    parts += [_path(axes, line) for line in lines]
    cut = [value for value in values if value > axes.y_max * (1.0 + 1e-9)]
    if cut:
        said = f"{len(cut)} point{'s' if len(cut) > 1 else ''} above the scale, up to {cut[-1]:.3g}"
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="15" class="cut" text-anchor="end">{said}</text>'
        )
    return "".join([*parts, "</svg>"])


def _path(axes: Axes, line: Line) -> str:
    commands, pen = [], "M"
    for x, y in line.points:
        if y is None:
            pen = "M"
            continue
        commands.append(f"{pen}{axes.x(x):.1f} {axes.y(y):.1f}")
        pen = "L"
    drawn = (
        f'<path d="{"".join(commands)}" fill="none" style="stroke:{line.colour}" '
        'stroke-width="1.8">'
    )
    return f"{drawn}<title>{escape(line.name)}</title></path>"


def _rule(axes: Axes, rule: Rule) -> str:
    x, top = axes.x(rule.x), HEIGHT - BOTTOM - 8 if rule.tick else TOP
    kind = "alert" if rule.tick else "mark"
    named = (
        ""
        if rule.number is None
        else f'<text x="{x + 4:.1f}" y="{TOP + 12}" class="number">{rule.number}</text>'
    )
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{HEIGHT - BOTTOM}" class="{kind}" '
        f'style="stroke:{rule.colour}">'
        f"<title>{escape(rule.label)}</title></line>{named}"
    )


def _grid(axes: Axes) -> list[str]:
    parts = []
    steps = round(axes.y_max / axes.y_step)
    for i in range(steps + 1):
        value = i * axes.y_step
        y = axes.y(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        )
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="tick" '
            f'text-anchor="end">{value:.4g}</text>'
        )
    step, _ = _nice(axes.x_max)
    value = 0.0
    while value <= axes.x_max:
        parts.append(
            f'<text x="{axes.x(value):.1f}" y="{HEIGHT - 8}" class="tick" '
            f'text-anchor="middle">{value:,.0f}</text>'
        )
        value += step
    return parts


def _highest(values: list[float]) -> float:
    if not values:
        return 1.0
    median = values[len(values) // 2]
    within = [value for value in values if median <= 0.0 or value <= 6.0 * median]
    return (within or values)[-1]


def _nice(highest: float) -> tuple[float, float]:
    """Return a round step, and the end of a scale of four to eight of them."""
    highest = highest if highest > 0.0 else 1.0
    power = 10.0 ** math.floor(math.log10(highest / 4.0))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if highest <= m * power * 6.0)
    return step, step * math.ceil(highest / step - 1e-9)
