"""The colours of pictures: those of the dashboard, in light and in dark, from its style sheet."""

from __future__ import annotations

import re

from drawing.page import ASSETS

_LIGHT, _DARK = re.findall(
    r":root \{(.*?)\}", (ASSETS / "style.css").read_text(encoding="utf-8"), re.DOTALL
)[:2]


def _inks(block: str) -> dict[str, str]:
    found = re.findall(r"--([\w-]+): (#[\da-f]+);", block)
    return {name: f"#{code[1:] if len(code) == 7 else code[1:] * 2}" for name, code in found}


LIGHT, DARK = _inks(_LIGHT), _inks(_DARK)
"""Colour by the name of the style sheet's variable; of the short codes there is only #fff."""
PAPER, INK, QUIET, RULE, GRID = (LIGHT[name] for name in ("paper", "ink", "soft", "line", "rise"))
LINES = tuple(LIGHT[f"c{at}"] for at in range(8))
