"""Represent a finding of `pbstream doctor`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Verdict = Literal["fine", "look", "wrong"]
SHOWN = 5
"""Names of a kind that a finding lists."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. `look`: it may be intended; `wrong`: something does not work until `remedy` is
    done.
    """

    what: str
    verdict: Verdict
    found: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the finding as JSON's types."""
        return asdict(self)
