"""Everything a router has learned and owes: the state that the engine moves."""

from __future__ import annotations

from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from router_state.arms import Arms
from router_state.capability import Capability, Hooks
from router_state.changes import CONFIG, Journal
from router_state.choice import Choice
from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.events import Asked
from router_state.kernel import Arm, Candidates, Chance, CostModel
from router_state.newcomers import Newcomers
from router_state.pacing.pacer import Pacer, Unpaced
from router_state.record import RequestRecord
from router_state.since import Since
from router_state.totals import Totals

Chances: TypeAlias = Chance | np.random.Generator
"""Source of a router's random draws; its profile chooses."""
C = TypeVar("C", bound=Capability)


class Policy(Protocol):
    """The way in which a router decides and learns. Policies hold no state: all of it is the
    router's.

    Attributes:
        ticks: by how much a decision moves the clock of forgetting.
    """

    @property
    def ticks(self) -> int: ...

    def look(self, state: RouterState, request: Asked) -> Candidates:
        """Return what is expected of each arm for a request: reward, and dollars."""
        ...

    def prepare(self, state: RouterState, choice: Choice) -> bool:
        """Prepare a decision; tell whether the arms' predictions changed."""
        ...

    def admit(self, state: RouterState, choice: Choice) -> str | None:
        """Rule out arms that the budget can't afford; return the reason if none would be left."""
        ...

    def choose(self, state: RouterState, choice: Choice) -> None:
        """Complete the scores of all arms, and choose one of those that are not excluded: the arm,
        why, and with which probability."""
        ...

    def chance_of(self, state: RouterState, choice: Choice, k: int) -> float:
        """Return the probability with which `choose` chooses the k-th arm, which it did not."""
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


class RouterState(Totals):
    """One router's state, its totals among it. `redeclaring.declare` adds its arms.
    Requests are remembered beside it, see `RequestRecord`.

    Attributes:
        config: the declaration in force; policy: the one of its profile.
        arms: what is known of every model.
        pacer: spends the budget.
        capabilities: what it has beside plain routing, in the order of `registered.KINDS`; hooks:
            what events call of them.
        journal: what has changed since it was last written.
        chance: draws posterior samples, ties, probes and pulls.
        newcomers: whom the budget has no place for; not kept.
        since: what was applied since the last decision, in its order.
    """

    __slots__ = (
        "arms",
        "capabilities",
        "chance",
        "config",
        "hooks",
        "journal",
        "newcomers",
        "pacer",
        "policy",
        "since",
    )
    capabilities: tuple[Capability, ...]
    chance: Chances
    hooks: Hooks
    pacer: Pacer
    policy: Policy

    def __init__(self, config: RouterConfig) -> None:
        super().__init__()
        self.config, self.journal = config, Journal()
        self.chance = Chance(config.knobs.seed)
        self.arms, self.pacer = Arms(config.dimensions, self.journal), Unpaced()
        self.capabilities, self.hooks, self.newcomers = (), Hooks(), Newcomers()
        self.since = Since()

    @property
    def lambda_t(self) -> float:
        """The dual variable as it was last used; 0 without a budget."""
        return self.pacer.lambda_t

    @property
    def unreachable(self) -> bool:
        """Tell whether even the cheapest models are known to cost more than the budget."""
        return self.pacer.unreachable

    def having(self, kind: type[C]) -> C | None:
        """Return the router's capability of a kind, if it has that."""
        return next((one for one in self.capabilities if isinstance(one, kind)), None)

    def put_in_force(self, config: RouterConfig, policy: Policy) -> None:
        """Replace the declaration, the policy, the pacer and what draws. What is owed in dollars
        stays owed."""
        pacer, chance = policy.pacer(self, config), policy.chance(self, config)
        solved = pacer.solves or self.arms.beside is not None
        # Prices of another kind are solved without a history.
        if solved != (self.arms.window is not None) or not pacer.follows(self.pacer):
            self.arms.begin_window(solved=solved)
        self.config, self.policy, self.pacer, self.chance = config, policy, pacer, chance
        if pacer.budget_usd is None:
            self.newcomers = Newcomers()
        self.journal.pieces.add(CONFIG)
