"""The page of families: their members, how alike they are, and what a newcomer starts with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from drawing.family_lines import known_lines, why_apart
from ground.json_values import Document
from router_state.kernel import list_price_of
from router_state.kernel.given import Price
from schemas.families import FamilyEstimated, FamilyStanding, MemberListed, ModelListed, SideListed
from studies.simulate.limits import Z95
from watching.dashboard.fleet import Fleet
from watching.dashboard.router_view import RouterView

EVERY_SECONDS = 1.0
"""Seconds between two looks at all members."""
MOST_MEMBERS = 20
"""Most members of a family that are listed beside other families; its own page lists all."""


class Families:
    """The families that a visitor may see: those of a router of the visitor's.

    Args:
        only: the family whose members are all listed; None: all families.
    """

    def __init__(self, fleet: Fleet, allows: Callable[[str], bool], only: str | None) -> None:
        self._fleet, self._allows, self._only = fleet, allows, only
        self._version, self._at = -1, float("-inf")
        self._sent: list[Document] | None = None

    def changes(self, *, now: float) -> Document | None:
        """Return the families if anything has changed; None: nothing has."""
        fleet = self._fleet
        if fleet.version == self._version or now - self._at < EVERY_SECONDS:
            return None
        self._version, self._at = fleet.version, now
        found = list(self._families())
        if found == self._sent:
            return None
        self._sent = found
        return {"families": found}

    def _families(self) -> Iterator[Document]:
        known = self._fleet.families
        routers: dict[str, dict[str, RouterView]] = {}
        for one in self._fleet.routers.values():
            if one.state is not None and one.state.family and self._allows(one.router_id):
                routers.setdefault(one.state.family.name, {})[one.router_id] = one
        for name in sorted({*known, *routers}):
            may = name in routers or self._allows(name)
            if may and self._only in (None, name):
                yield self._family(name, known.get(name), routers.get(name, {}))

    def _family(
        self, name: str, known: FamilyEstimated | None, routers: dict[str, RouterView]
    ) -> Document:
        listed = {} if known is None else {one.router_id: one for one in known.listed}
        names = [one for one in listed if self._allows(one)]
        names += sorted(routers.keys() - listed.keys())
        members = [
            _member(one, listed.get(one), _standing(self._fleet.routers.get(one), name))
            for one in names
        ]
        # What is wrong comes first.
        members.sort(key=lambda one: one["why"] is None)
        shown = members[: None if self._only else MOST_MEMBERS]
        count = max(0 if known is None else known.members, len(members))
        return {
            "family": name,
            "lines": known_lines(known),
            "models": []
            if known is None
            else [_model(one, known, _prices(routers, one.model)) for one in known.models],
            "members": shown,
            "more": count - len(shown),
        }


def _standing(router: RouterView | None, family: str) -> FamilyStanding | None:
    standing = None if router is None or router.state is None else router.state.family
    return standing if standing is not None and standing.name == family else None


def _member(
    router_id: str, listed: MemberListed | None, standing: FamilyStanding | None
) -> Document:
    counts = [] if standing is None else [one.requests for one in standing.models]
    told = listed or standing
    return {
        "router_id": router_id,
        "gives": told and told.gives,
        "takes": told and told.takes,
        "rewards": listed and listed.rewards,
        "level": listed and listed.level,
        "weight": listed and listed.weight,
        "aside": listed is not None and listed.aside,
        "why": why_apart(listed, standing),
        # Requests that the others' knowledge counts for still: of the least and the most known
        # model.
        "counts": [min(counts), max(counts)] if counts else None,
    }


def _prices(routers: dict[str, RouterView], model: str) -> tuple[float, float] | None:
    """Return the lowest and the highest list price of a model, in dollars per 1,000 tokens."""
    found = [
        list_price_of(Price(*declared.prices[model]))
        for one in routers.values()
        if (declared := one.declared) is not None and model in declared.prices
    ]
    return (min(found), max(found)) if found else None


def _model(
    one: ModelListed, family: FamilyEstimated, prices: tuple[float, float] | None
) -> Document:
    rewards, bills = one.rewards, one.bills
    return {
        "model": one.model,
        "members": max((side.members for side in (rewards, bills) if side), default=0),
        "rewards": rewards and _side(rewards) | {"between": _between(rewards)},
        "bills": bills and _side(bills) | {"usd": _usd(bills, family.noise[1], prices)},
    }


def _side(side: SideListed) -> Document:
    return {
        "apart": side.apart,
        "sure": side.apart_interval,
        "requests": side.requests,
        "expected": side.expected,
    }


def _between(side: SideListed) -> tuple[float, float] | None:
    """Return the rewards between which 95 % of the members' means lie."""
    if side.expected is None:
        return None
    return side.expected - Z95 * side.apart, side.expected + Z95 * side.apart


def _usd(
    side: SideListed, noise: float, prices: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the mean bills that a newcomer expects at the members' lowest and highest list prices:
    means of lognormals, whose logarithms vary by `noise`.
    """
    if side.expected is None or prices is None:
        return None
    ratio = math.exp(side.expected + noise / 2.0)
    return ratio * prices[0], ratio * prices[1]
