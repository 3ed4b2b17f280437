"""Share a pool's money among its members so that a dollar earns the same at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MICRO = 1_000_000
"""Leases are whole millionths of a dollar: they add up without rounding."""
KEPT = 0.5
"""Share of what a member has left that one round leaves it at least: what it spends before the
change is in force does not make its lease too small."""
STEP = 2.0
"""Factor by which a member's share of what is left is moved in one round at most."""
POWER = 0.5
"""Power of the price of a dollar by which shares move: prices fall as money comes, so half of the
way is enough."""
ROUNDS = 64
"""Bounds of members are met after as many passes as there are members."""


class Standing(NamedTuple):
    """A member's account of the period that goes on.

    Attributes:
        charged_usd: dollars that are charged, those held back for bills in flight included.
        price: reward that a dollar earns at the margin; 0: it does not spend what it has.
        wanted_usd: dollars that it would still spend, had it any number of them.
        requests: how many are still expected.
    """

    charged_usd: float
    price: float
    wanted_usd: float
    requests: float


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a pool.

    Attributes:
        lease_usd: dollars of the period that it holds.
        least, most: shares of the pool's budget between which its lease stays.
        standing: None: nothing is known of it.
    """

    name: str
    lease_usd: float
    least: float = 0.0
    most: float = 1.0
    standing: Standing | None = None

    @property
    def charged_usd(self) -> float:
        """Dollars that are charged, as far as is known."""
        return 0.0 if self.standing is None else max(self.standing.charged_usd, 0.0)

    @property
    def left_usd(self) -> float:
        """Dollars of its lease that are not charged."""
        return max(self.lease_usd - self.charged_usd, 0.0)


def share(total_usd: float, members: Sequence[Member]) -> dict[str, float]:
    """Return the leases of a pool's members, which together are `total_usd` at most.

    A member of which nothing is known keeps its lease. Where leases are more than the pool, as when
    it was made smaller, all that is left is cut alike.

    Args:
        members: with shares whose least ones are 1 together at most.
    """
    known = [member for member in members if member.standing is not None]
    leases = {member.name: member.lease_usd for member in members if member.standing is None}
    free = total_usd - sum(leases.values()) - sum(m.charged_usd for m in known)
    if free > 0.0 and known:
        lefts = _bounded(_weights(known), free, [_bounds(m, total_usd, free) for m in known])
        # What nobody wants stays where it is: traffic may come.
        most = [max(m.most * total_usd - m.charged_usd, 0.0) for m in known]
        tops = [(left, max(left, high)) for left, high in zip(lefts, most, strict=True)]
        lefts = _bounded([max(m.left_usd, MICRO**-1) for m in known], free, tops)
    else:
        lefts = [0.0] * len(known)
    for member, left in zip(known, lefts, strict=True):
        leases[member.name] = _whole(member.charged_usd + left)
    return leases


def _weights(members: Sequence[Member]) -> list[float]:
    """Return what each member gets of what is left, up to a common factor."""
    standings = [m.standing for m in members if m.standing is not None]
    lefts = [m.left_usd for m in members]
    whole, requests = sum(lefts), sum(s.requests for s in standings)
    # Before anybody has a lease, and of one without: by the traffic.
    evenly = [s.requests / requests if requests > 0.0 else 1.0 / len(members) for s in standings]
    if whole <= 0.0:
        return evenly
    mean = sum(left * s.price for left, s in zip(lefts, standings, strict=True)) / whole
    found = []
    for left, standing, even in zip(lefts, standings, evenly, strict=True):
        factor = (standing.price / mean) ** POWER if mean > 0.0 else 1.0
        found.append(max(left / whole, 0.01 * even) * min(max(factor, 1.0 / STEP), STEP))
    return found


def _bounds(member: Member, total_usd: float, free_usd: float) -> tuple[float, float]:
    """Return between what the dollars are that a member may have left."""
    assert member.standing is not None
    charged = member.charged_usd
    high = max(member.most * total_usd - charged, 0.0)
    low = min(max(member.least * total_usd - charged, 0.0), high)
    if member.standing.price <= 0.0:
        # It needs no more than it wants, and of what it holds it gives no more than the rest.
        high = min(high, max(member.standing.wanted_usd, low))
        low = max(low, min(high, member.left_usd))
    # What it holds is cut by half at most, unless there is less than that for all.
    low = max(low, min(KEPT * member.left_usd, free_usd))
    return low, max(high, low)


def _bounded(
    weights: Sequence[float], total: float, bounds: Sequence[tuple[float, float]]
) -> list[float]:
    """Return parts in proportion to weights, within bounds, that are `total` together where the
    bounds allow it, and never more."""
    lows = sum(low for low, _ in bounds)
    if lows > total:
        return [low * total / lows for low, _ in bounds]
    fixed: dict[int, float] = {}
    for _ in range(ROUNDS):
        left = total - sum(fixed.values())
        weight = sum(w for k, w in enumerate(weights) if k not in fixed)
        if len(fixed) == len(weights) or weight <= 0.0:
            break
        parts = {k: left * w / weight for k, w in enumerate(weights) if k not in fixed}
        over = {k: bounds[k][1] for k, part in parts.items() if part > bounds[k][1]}
        under = {k: bounds[k][0] for k, part in parts.items() if part < bounds[k][0]}
        # The side that is further off is fixed first: it moves what is left for the others most.
        excess = sum(parts[k] - bound for k, bound in over.items())
        lack = sum(bound - parts[k] for k, bound in under.items())
        if not over and not under:
            fixed |= parts
            break
        fixed |= over if excess >= lack else under
    found = [fixed.get(k, bounds[k][0]) for k in range(len(weights))]
    spent = sum(found)
    return found if spent <= total else [part * total / spent for part in found]


def _whole(usd: float) -> float:
    """Return dollars without what is less than a millionth."""
    return int(usd * MICRO) / MICRO
