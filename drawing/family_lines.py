"""Write a router's place in its family, and what a family knows, as sentences."""

from __future__ import annotations

from drawing.numbers import number
from schemas.families import FamilyStanding

SHOWN = 5
"""Most models of a sentence; those of which the family knows the most come first."""


def family_lines(family: FamilyStanding | None) -> list[str]:
    """Return what a router has from its family, and how it stands in it; none without a family."""
    if family is None:
        return []
    others = "1 other" if family.members == 1 else f"{family.members} others"
    lines = [f"family {family.name}: {others} tell of their requests"]
    if family.refused is not None:
        return [f"family {family.name} does not take the router: {family.refused}"]
    if family.aside:
        lines.append(
            f"family {family.name} leaves the router out: its labels mean something else than "
            "those of the others"
        )
    known = sorted(family.models, key=lambda one: (-one.requests, one.model))
    if known:
        counts = [f"{one.model} {number(one.requests)}" for one in known[:SHOWN]]
        more = len(known) - SHOWN
        rest = f", and {more} more" if more > 0 else ""
        lines.append(f"what they know counts for requests: {', '.join(counts)}{rest}")
    return lines
