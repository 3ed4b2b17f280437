"""A model of the protocol between a pool and its members: messages come in any order, twice, or
never; members spend, crash, leave and come back; owners are followed by others. Whatever happens,
no more can be charged than there is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from router_state.periods.holdings import Granted
from router_state.periods.reporting import Held, Reported
from router_state.periods.spending import PeriodBudget
from router_state.pools import pieces
from router_state.pools.pool import Pool
from router_state.pools.pool_config import PoolConfig

USD, SECONDS = 30.0, 100.0
BUDGET = PeriodBudget(USD, "day")
NAMES = ("a", "b", "c")
CLOSE = 1e-6


@dataclass
class Router:
    """A router as the protocol sees it: what it was granted, and what it has spent."""

    born: int = 0
    n: int = 0
    moves: int = 0
    usd: float = 0.0
    until: float = 0.0
    back: bool = False
    """Whether it was said that the lease has ended: then it has, whatever the clock says later."""
    spent: float = 0.0
    before: float = 0.0
    """What memberships before this one have spent."""
    member: bool = True

    def could_spend(self, now: float) -> float:
        """Return what it may have been charged at the end, by what it has taken."""
        holds = self.usd if self.member and self.lasts(now) else 0.0
        return self.before + max(self.spent, holds)

    def lasts(self, now: float) -> bool:
        """Tell whether the lease may be spent."""
        return now < self.until and not self.back

    def spend(self, share: float, now: float) -> None:
        """Spend some of what is left of the lease."""
        if self.member and self.lasts(now):
            self.spent += share * max(self.usd - self.spent, 0.0)
            self.moves += 1

    def take(self, grant: Granted) -> None:
        """Take a grant, if it is for this membership and newer."""
        if self.member and grant.born == self.born and grant.n > self.n:
            self.n, self.moves = grant.n, self.moves + 1
            for one in grant.lines:
                self.usd, self.until, self.back = one.usd, one.until, False

    def report(self, name: str, now: float, *, left: bool = False, wants: float = 10.0) -> Reported:
        """Say how it stands."""
        if now >= self.until and not self.back:
            self.back, self.moves = True, self.moves + 1
        holds = self.could_spend(now) - self.before
        holds = self.spent if left else holds
        held = (Held("shop/day", 0.0, holds, self.spent, ((0.0, wants),)),) if self.n else ()
        return Reported("shop", f"router:{name}", self.born, self.n, self.moves, left, held)


@dataclass
class World:
    """A pool, its routers, and all that is on its way."""

    rng: random.Random
    usd: float = USD
    now: float = 1000.0
    pool: Pool = field(default_factory=lambda: Pool("shop"))
    routers: dict[str, Router] = field(default_factory=lambda: {name: Router() for name in NAMES})
    reports: list[Reported] = field(default_factory=list)
    grants: list[tuple[str, Granted]] = field(default_factory=list)
    births: int = 0

    def step(self) -> None:
        """Let something happen."""
        name = self.rng.choice(NAMES)
        getattr(self, self.rng.choice(ACTIONS))(name, self.routers[name])

    def some(self, sent: list[Any]) -> Any:
        """Return a message: often the newest, else any, again or for the first time."""
        return sent[-1] if self.rng.random() < 0.5 else self.rng.choice(sent[-20:])

    def report(self, name: str, router: Router) -> None:
        """Let a router speak."""
        if router.member:
            self.reports.append(router.report(name, self.now, wants=self.rng.choice(WANTS)))

    def report_ahead(self, name: str, router: Router) -> None:
        """Let a router speak whose clock is ahead for a moment: it gives back what has not
        ended."""
        if router.member:
            ahead = self.now + 2.0 * SECONDS
            self.reports.append(router.report(name, ahead, wants=self.rng.choice(WANTS)))

    def hear(self, name: str, router: Router) -> None:
        """Let the pool read a report."""
        if self.reports:
            self.pool.take_report(self.some(self.reports), now=self.now)

    def grant(self, name: str, router: Router) -> None:
        """Let the pool grant."""
        self.grants += self.pool.grant_all(now=self.now)

    def grant_and_lose(self, name: str, router: Router) -> None:
        """Let the pool's worker end when what it granted is durable, and not sent."""
        self.pool.grant_all(now=self.now)
        self.pool = pieces.unpack("shop", pieces.pack(self.pool))

    def grant_and_crash(self, name: str, router: Router) -> None:
        """Let the pool's worker end when nothing is durable, and nothing said."""
        durable = pieces.pack(self.pool)
        self.pool.grant_all(now=self.now)
        self.pool = pieces.unpack("shop", durable)

    def take(self, name: str, router: Router) -> None:
        """Let a router read a grant."""
        if self.grants:
            to, grant = self.some(self.grants)
            self.routers[to.removeprefix("router:")].take(grant)

    def spend(self, name: str, router: Router) -> None:
        """Let a router spend some of what is left of its lease."""
        router.spend(self.rng.random() ** 2, self.now)

    def wait(self, name: str, router: Router) -> None:
        """Let time pass, so that leases may end."""
        self.now += self.rng.random() * 1.5 * SECONDS

    def go(self, name: str, router: Router) -> None:
        """Let a router leave the pool; its last report may never be read."""
        if router.member:
            self.reports.append(router.report(name, self.now, left=True))
            self.leave(router)

    def join(self, name: str, router: Router) -> None:
        """Let a router that left come back."""
        if not router.member:
            self.births += 1
            self.routers[name] = Router(self.births, before=router.before)

    @staticmethod
    def leave(router: Router) -> None:
        """Let a router be none of the pool any more."""
        router.before, router.spent, router.member = router.before + router.spent, 0.0, False

    def check(self) -> None:
        """No more can be charged than there is, by what members have and by what is on its way."""
        could = sum(router.could_spend(self.now) for router in self.routers.values())
        assert could <= self.usd + CLOSE
        (line,) = self.pool.lines.values() or (None,)
        if line is not None:
            assert line.exposed_usd <= self.usd + CLOSE


ACTIONS = (
    *("report", "hear", "grant", "take", "spend") * 5,
    *("grant_and_lose", "grant_and_crash", "wait", "go", "join"),
    "report_ahead",
)
"""Names of what may happen, the usual more often."""
WANTS = (0.0, 1.0, 10.0, 40.0)
"""Dollars that a router may say it would still spend."""


def worlds(count: int) -> Iterator[World]:
    """Yield a world for each seed, whose pool knows all routers."""
    for seed in range(count):
        world = World(random.Random(seed))
        world.pool.declare(PoolConfig((BUDGET,), lease_seconds=SECONDS))
        for name, router in world.routers.items():
            world.pool.take_report(router.report(name, world.now), now=world.now)
        yield world


def test_no_more_can_be_charged_than_there_is() -> None:
    for world in worlds(200):
        for _ in range(150):
            world.step()
            world.check()


def test_in_the_end_all_of_it_is_lent() -> None:
    """Once messages arrive, what is not spent is at members that speak."""
    for world in worlds(75):
        for _ in range(80):
            world.step()
        for name in NAMES:
            world.join(name, world.routers[name])
        # Longer than a lease: what was given back too early counts until it has ended.
        for _ in range(40):
            world.now += 0.04 * SECONDS
            for name, router in world.routers.items():
                router.moves += 1
                world.pool.take_report(router.report(name, world.now), now=world.now)
            for to, grant in world.pool.grant_all(now=world.now):
                world.routers[to.removeprefix("router:")].take(grant)
        could = sum(router.could_spend(world.now) for router in world.routers.values())
        # A membership that ended without a word counts with all that was granted to it.
        (line,) = world.pool.lines.values()
        silent = sum(part.before for part in line.grants.values())
        spent = sum(router.before for router in world.routers.values())
        assert could == pytest.approx(USD - silent + spent, abs=0.05 * USD)
