"""Tenants at play: each a router of its own, alone or in a family, or all of them one router."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from benchmarks.arena import Array, declared
from benchmarks.family_kin import Kin
from benchmarks.family_sums import LEAST_TOLD, Sums, Taken, own_sums
from benchmarks.family_worlds import REQUESTS, Tenant, Whole
from benchmarks.played import Played
from router_state.kernel import Regression, SharedPrior, conclude_with
from router_state.learning.guess import COSTS, REWARDS

BILLS_LATE, LABELS_LATE = 30, 100
GROWTH = 0.16
"""Share by which evidence grows between two reports, as between two estimates of a router."""


class Household:
    """A family's owner: what members said of rewards and of bills, and what follows."""

    def __init__(self, d: int) -> None:
        self.sides = (Kin(d, REWARDS), Kin(d, COSTS))
        self.members: tuple[dict[str, dict[str, Sums]], ...] = ({}, {})
        self.noise: tuple[dict[str, float], ...] = ({}, {})
        self.due_at = [0.0, 0.0]

    def hear(self, name: str, side: int, sums: dict[str, Sums], noise: float) -> None:
        """Take in a report; estimate anew where evidence has grown."""
        members, kin = self.members[side], self.sides[side]
        members[name], self.noise[side][name] = sums, noise
        kin.hear(name, sums)
        count = sum(one.count for of in members.values() for one in of.values())
        if count >= self.due_at[side]:
            kin.estimate(members, noise=float(np.median(list(self.noise[side].values()))))
            self.due_at[side] = count * (1.0 + GROWTH)


class Player:
    """A router that plays a tenant's requests, one at a time."""

    def __init__(self, name: str, tenant: Tenant, family: Household | None) -> None:
        self.name, self.tenant, self.family = name, tenant, family
        prices = dict(zip(tenant.models, tenant.prices, strict=True))
        config = declared(prices, tenant.budget, tenant.contexts.shape[1])
        self.engine = Played.start(config)
        self.taken: tuple[dict[str, Taken], ...] = ({}, {})
        self.due_at = [LEAST_TOLD, LEAST_TOLD]
        self.at = 0
        self.bills: deque[int] = deque()
        self.labels: deque[int] = deque()
        self.chosen = np.zeros(len(tenant.contexts), np.int64)
        if family is not None:
            self.take_over()

    def step(self) -> None:
        """Take in what has come, and decide one request."""
        i, tenant = self.at, self.tenant
        while self.bills and self.bills[0] < i - BILLS_LATE:
            self._bill(self.bills.popleft())
        while self.labels and self.labels[0] < i - LABELS_LATE:
            self._label(self.labels.popleft())
        self._exchange()
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
        self._exchange()

    def _bill(self, i: int) -> None:
        self.engine.settle(str(i), cost_usd=float(self.tenant.costs[i, self.chosen[i]]))

    def _label(self, i: int) -> None:
        self.engine.learn(str(i), reward=float(self.tenant.rewards[i, self.chosen[i]]))

    def _sides(self) -> tuple[tuple[SharedPrior, dict[str, Regression]], ...]:
        arms = self.engine.state.arms
        rewards = {arm.name: arm.rewards for arm in arms}
        bills = {arm.name: arm.costs.regression for arm in arms if not arm.costs.free}
        return (arms.rewards, rewards), (arms.bills, bills)

    def _exchange(self) -> None:
        """Report what has grown, and take over what the others have said since."""
        if self.family is None:
            return
        told = False
        for side, (prior, ones) in enumerate(self._sides()):
            if prior.seen < self.due_at[side]:
                continue
            self.due_at[side] = prior.seen * (1.0 + GROWTH)
            state = self.engine.state
            if side == 0:
                for one in ones.values():
                    one.forget(state.t, state.config.knobs.gamma)
            sums = {
                name: own_sums(one, prior, self.taken[side].get(name)) for name, one in ones.items()
            }
            sums = {name: one for name, one in sums.items() if one.count > 0.5}
            self.family.hear(self.name, side, sums, prior.noise)
            told = True
        if told:
            self.take_over()

    def take_over(self) -> None:
        """Take over what the others say of every model."""
        assert self.family is not None
        for side, (prior, ones) in enumerate(self._sides()):
            kin, taken = self.family.sides[side], self.taken[side]
            added, known = [], False
            for name, one in ones.items():
                found = kin.told(self.name, name) or Sums.none(prior.d)
                known = known or found.count > 0.0 or name in taken
                before = taken.get(name)
                net = found if before is None else found.less(before.left(one), left=1.0)
                added.append(net.packed())
                taken[name] = Taken(found, one.forgotten, one.moved)
            if not known:
                taken.clear()
                continue
            conclude_with(prior, list(ones.values()), added)
            self.engine.state.journal.jumped = True
            self.engine.state.arms.sample.left = 0


def play(tenants: Sequence[Tenant], how: str, order: str) -> list[Whole]:
    """Return what each tenant chose, shape (n,).

    Args:
        how: alone, family, or pooled: one router for all.
        order: in turn, or at once.
    """
    if how == "pooled":
        return _pooled(tenants, order)
    family = Household(tenants[0].contexts.shape[1]) if how == "family" else None
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
