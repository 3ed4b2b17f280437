"""The colours of every picture: as drawn, and what takes their place on a dark page."""

from __future__ import annotations

INKS = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "quiet": ("#57606a", "#9da7b3"),
    "rule": ("#d0d7de", "#30363d"),
    "grid": ("#eaeef2", "#21262d"),
    "over": ("#b3261e", "#ff7b71"),
    "ours": ("#f2f6fb", "#1c2a3f"),
    "line-0": ("#1f6feb", "#79b8ff"),
    "line-1": ("#d1242f", "#ff7b72"),
    "line-2": ("#1a7f37", "#56d364"),
    "line-3": ("#9a6700", "#e3b341"),
    "line-4": ("#8250df", "#d2a8ff"),
    "line-5": ("#bf3989", "#f778ba"),
    "line-6": ("#0a7ea4", "#76e3ea"),
    "line-7": ("#6e7781", "#b1bac4"),
    "line-8": ("#bc4c00", "#ffa657"),
    "line-9": ("#4d7c0f", "#a5d63f"),
}
"""(light, dark) by the name of the style sheet's variable. No light one stands twice: an SVG's
colours are put back into variables by their value.

Contrast on their paper, light and dark: texts at least 4.5, lines at least 3 (WCAG 2.1 AA);
`tests/unit/test_drawing.py` computes it.
"""

PAPER, INK, QUIET, RULE, GRID = (
    INKS[name][0] for name in ("paper", "ink", "quiet", "rule", "grid")
)
LINES = tuple(light for name, (light, _) in INKS.items() if name.startswith("line-"))


def variable(colour: str) -> str:
    """Return the style sheet's variable for a colour as drawn, so that a dark page turns it."""
    name = next(name for name, (light, _) in INKS.items() if light == colour)
    return f"var(--{name})"


def line_colours(names: list[str]) -> dict[str, str]:
    """Return a colour for each name, in order; after ten they come again."""
    return {name: LINES[at % len(LINES)] for at, name in enumerate(names)}
