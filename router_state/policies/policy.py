"""Define the protocol of policies, through which the engine uses them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.kernel import Arm, Candidates, CostModel, Pacer
from router_state.policies.choosing import Choice
from router_state.policies.eligibility import Excluded
from router_state.policies.live import Live
from router_state.policies.paper import Paper
from router_state.record import RequestRecord
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
        """Return the pacer from now on: the present one if it can go on."""
        ...

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """Return the random generator from now on: the present one if it can go on."""
        ...

    def statistics(
        self, state: RouterState, knobs: Knobs, model: str, prior: Prior | None
    ) -> tuple[Matrix, Vector]:
        """Return A (d, d) and b (d,) with which a joining arm starts. Raises InvalidConfig."""
        ...

    def joined(self, state: RouterState, names: list[str]) -> None:
        """Complete the start of newcomers, and update the shared prior by their priors."""
        ...

    def prepare(self, state: RouterState, x: Vector, tokens: int | None) -> bool:
        """Prepare a decision for context x, shape (d,); tell whether the arms' predictions
        changed."""
        ...

    def look(self, state: RouterState, x: Vector, tokens: int | None) -> Candidates:
        """Return what is expected of each arm for context x, shape (d,): reward, and dollars."""
        ...

    def admit(
        self, state: RouterState, excluded: Excluded, seen: Candidates
    ) -> tuple[Excluded, str | None]:
        """Rule out arms that the budget can't afford; return the reason if none would be left."""
        ...

    def choose(self, state: RouterState, seen: Candidates, price: float) -> Choice:
        """Complete the scores of all arms, given what money weighs in them (`Pacer.weigh`), and
        choose one of those that are not excluded."""
        ...

    def learn(
        self, state: RouterState, arm: Arm, record: RequestRecord, x: Vector, reward: float
    ) -> float:
        """Learn a request's first reward; return how much the arm had forgotten by then."""
        ...

    def bill(
        self, state: RouterState, costs: CostModel, ratio: float, known: float, x: Vector | None
    ) -> None:
        """Learn a request's first bill, as ratio to its list price; see `CostModel.observe`."""
        ...


POLICIES: Mapping[str, Policy] = MappingProxyType({"paper": Paper(), "live": Live()})
"""Policies by the names of `config.PROFILES`."""
