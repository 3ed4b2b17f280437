"""Tenants at play: each a router of its own, alone or in a family, or all of them one router."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.arena import Array, declared
from benchmarks.family_worlds import REQUESTS, Tenant, Whole
from benchmarks.played import Played
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import Model, Report

BILLS_LATE, LABELS_LATE = 30, 100


class Household:
    """A family's owner, whose estimates follow at once."""

    def __init__(self) -> None:
        self.sums: dict[str, Model] = {}
        self.owner = FamilyOwner("all", self.sums.get)

    def take_report(self, report: Report) -> None:
        """Take in a report; estimate anew where evidence has grown."""
        owner = self.owner
        owner.take_report(report)
        if owner.is_due:
            estimating = owner.estimating()
            estimating.run()
            owner.take(estimating)
        # As the worker's table would keep them.
        for piece, model in owner.fresh.items():
            if model is None:
                self.sums.pop(piece, None)
            else:
                self.sums[piece] = model
        owner.fresh.clear()
        owner.waiting.clear()


class Player:
    """A router that plays a tenant's requests, one at a time."""

    def __init__(self, name: str, tenant: Tenant, family: Household | None) -> None:
        self.name, self.tenant, self.family = name, tenant, family
        prices = dict(zip(tenant.models, tenant.prices, strict=True))
        config = declared(prices, tenant.budget, tenant.contexts.shape[1])
        if family is not None:
            config = replace(config, capabilities={"family": FamilyDeclared("all")})
        self.engine = Played.start(config)
        self.reported = (0, 0)
        self.at = 0
        self.bills: deque[int] = deque()
        self.labels: deque[int] = deque()
        self.chosen = np.zeros(len(tenant.contexts), np.int64)
        if (member := self.member) is not None:
            self._exchange(member)

    @property
    def member(self) -> Family | None:
        """Return the router's membership; None: it is alone."""
        return self.engine.state.having(Family)

    def step(self) -> None:
        """Take in what has come, and decide one request."""
        i, tenant = self.at, self.tenant
        while self.bills and self.bills[0] < i - BILLS_LATE:
            self._bill(self.bills.popleft())
        while self.labels and self.labels[0] < i - LABELS_LATE:
            self._label(self.labels.popleft())
        if (member := self.member) is not None and member.is_due(self.reported):
            self._exchange(member)
        record = self.engine.decide(str(i), tenant.contexts[i], now=float(i))
        self.chosen[i] = tenant.models.index(record.model)
        self.bills.append(i)
        self.labels.append(i)
        self.at += 1

    def end(self) -> None:
        """Take in what is outstanding."""
        while self.bills:
            self._bill(self.bills.popleft())
        while self.labels:
            self._label(self.labels.popleft())
        if (member := self.member) is not None:
            self._exchange(member)

    def _bill(self, i: int) -> None:
        self.engine.settle(str(i), cost_usd=float(self.tenant.costs[i, self.chosen[i]]))

    def _label(self, i: int) -> None:
        self.engine.learn(str(i), reward=float(self.tenant.rewards[i, self.chosen[i]]))

    def _exchange(self, member: Family) -> None:
        """Report, and take over what the others say."""
        assert self.family is not None
        self.family.take_report(member.reported(self.name, ""))
        self.reported = member.seen
        for told in self.family.owner.priors_for(self.name):
            self.engine.play(told, float(self.at))


def play(tenants: Sequence[Tenant], how: str, order: str) -> list[Whole]:
    """Return what each tenant chose, shape (n,).

    Args:
        how: alone, family, or pooled: one router for all.
        order: in turn, or at once.
    """
    if how == "pooled":
        return _pooled(tenants, order)
    family = Household() if how == "family" else None
    players: list[Player] = []
    if order == "in turn":
        for k, one in enumerate(tenants):
            players.append(player := Player(f"r{k:03d}", one, family))
            for _ in range(REQUESTS):
                player.step()
            player.end()
    else:
        players = [Player(f"r{k:03d}", one, family) for k, one in enumerate(tenants)]
        for _ in range(REQUESTS):
            for player in players:
                player.step()
    return [player.chosen for player in players]


def _pooled(tenants: Sequence[Tenant], order: str) -> list[Whole]:
    """Play all tenants' requests by one router, with their mean budget."""
    at = [(k, i) for k in range(len(tenants)) for i in range(REQUESTS)]
    if order != "in turn":
        at.sort(key=lambda one: one[::-1])

    def of(name: str) -> Array:
        return np.stack([getattr(tenants[k], name)[i] for k, i in at])

    first = tenants[0]
    budget = float(np.mean([one.budget for one in tenants]))
    whole = Tenant(
        first.models,
        first.prices,
        of("contexts"),
        of("rewards"),
        of("costs"),
        of("quality"),
        budget,
    )
    player = Player("all", whole, None)
    for _ in at:
        player.step()
    found: list[Whole] = [np.zeros(REQUESTS, np.int64) for _ in tenants]
    for (k, i), chosen in zip(at, player.chosen, strict=True):
        found[k][i] = chosen
    return found
