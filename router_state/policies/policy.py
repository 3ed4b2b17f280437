"""The protocol of a policy: the engine drives one and does not know which it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from router_state.arm import Arm
from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.kernel import Projection
from router_state.pacing.pacer import Pacer, Weights
from router_state.policies.eligibility import Excluded
from router_state.policies.live import Live
from router_state.policies.paper import Paper
from router_state.record import Candidates, Choice, RequestRecord
from router_state.state.router import Chances, RouterState


class Policy(Protocol):
    """The way in which a router decides and learns. Policies hold no state: all of it is the
    router's.

    Attributes:
        ticks: by how much a decision moves the clock of forgetting.
    """

    @property
    def ticks(self) -> int: ...

    def pacer(self, state: RouterState, config: RouterConfig) -> Pacer:
        """Return what spends a budget from now on: the present pacer where it can go on."""
        ...

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """Return what draws from now on: the present source where it can go on."""
        ...

    def statistics(
        self, state: RouterState, knobs: Knobs, model: str, prior: Prior | None
    ) -> tuple[Matrix, Vector]:
        """Return A (d, d) and b (d,) with which a joining arm starts. Raises InvalidConfig."""
        ...

    def joined(self, state: RouterState, names: list[str]) -> None:
        """Complete what newcomers start with, and let the others know what they were declared to
        know."""
        ...

    def prepare(self, state: RouterState, x: Vector, tokens: int | None) -> bool:
        """Bring up to date what a decision for context x, shape (d,), needs; tell whether what arms
        say has changed by it."""
        ...

    def costs(self, state: RouterState, seen: Projection, tokens: int | None) -> list[float]:
        """Return the expected dollars of the request at each arm."""
        ...

    def admit(
        self, state: RouterState, excluded: Excluded, costs: list[float]
    ) -> tuple[Excluded, str | None]:
        """Rule out arms that the budget has no place for; the reason says so where it can't be
        helped."""
        ...

    def choose(
        self,
        state: RouterState,
        x: Vector,
        seen: Projection,
        costs: list[float],
        *,
        excluded: Excluded,
        weights: Weights,
    ) -> tuple[Candidates, Choice]:
        """Score every arm and choose one."""
        ...

    def learn(
        self, state: RouterState, arm: Arm, record: RequestRecord, x: Vector, reward: float
    ) -> float:
        """Learn a request's first reward; return how much the arm had forgotten by then."""
        ...

    def bill(
        self,
        state: RouterState,
        arm: Arm,
        *,
        ratio: float,
        known: float,
        x: Vector | None,
    ) -> None:
        """Learn a request's first bill, as ratio to its list price."""
        ...


POLICIES: Mapping[str, Policy] = MappingProxyType({"paper": Paper(), "live": Live()})
"""Policies by the names of `config.PROFILES`."""
