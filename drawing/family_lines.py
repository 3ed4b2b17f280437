"""Write a router's place in its family, and what a family knows, as sentences."""

from __future__ import annotations

from drawing.numbers import number
from schemas.families import FamilyEstimated, FamilyStanding, MemberListed

SHOWN = 5
"""Most models of a sentence; those of which the family knows the most come first."""

ASIDE = "its labels mean something else than those of the others"
"""Why a family leaves a member out."""


def family_lines(family: FamilyStanding | None) -> list[str]:
    """Return sentences about what a router took from its family, and about its place there; none
    without a family.
    """
    if family is None:
        return []
    others = "1 other tells" if family.members == 1 else f"{family.members} others tell"
    lines = [f"family {family.name}: {others} of their requests"]
    if not family.members and family.models:
        lines = [f"family {family.name}: what it knows was brought from elsewhere"]
    if family.refused is not None:
        return [f"family {family.name} does not take the router: {family.refused}"]
    if family.aside:
        lines.append(f"family {family.name} leaves the router out: {ASIDE}")
    known = sorted(family.models, key=lambda one: (-one.requests, one.model))
    if known:
        counts = [f"{one.model} {number(one.requests)}" for one in known[:SHOWN]]
        more = len(known) - SHOWN
        rest = f", and {more} more" if more > 0 else ""
        lines.append(f"what they know counts for requests: {', '.join(counts)}{rest}")
    return lines


def known_lines(family: FamilyEstimated | None) -> list[str]:
    """Return sentences about a family's estimates; None: the family has published none yet."""
    if family is None:
        return ["it has published nothing yet: it does once its members have 20 rewards or bills"]
    aside = sum(one.aside for one in family.listed)
    lines = [
        f"{_count(family.members, 'member')}, {_count(len(family.models), 'model')}, contexts of "
        f"{family.dimensions} dimensions"
    ]
    if not family.members:
        lines.append("what it knows was brought from elsewhere")
    subjects = {name for model in family.models for name in model.shared or ()}
    if names := sorted(name.removeprefix("attempts:") for name in subjects):
        lines.append(f"it knows what verdicts mean: {', '.join(names)}")
    if aside:
        lines.append(f"{_count(aside, 'member')} left out of what the others get")
    return lines


def why_apart(listed: MemberListed | None, standing: FamilyStanding | None) -> str | None:
    """Return why a member is left out of its family's exchange; None: it takes part.

    Args:
        listed: the member's entry in the family's record; standing: the router's own record of its
            place.
    """
    if standing is not None and standing.refused is not None:
        return f"refused: {standing.refused}"
    if listed is None:
        return "it has told nothing yet"
    return f"left out: {ASIDE}" if listed.aside else None


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
