"""The state of a router, which the engine changes: all that the router has learned and owes."""

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
    """The way in which a router decides and learns. Policies hold no state; the router does.

    Attributes:
        ticks: steps by which a decision moves the clock of forgetting.
    """

    @property
    def ticks(self) -> int: ...

    def look(self, state: RouterState, request: Asked) -> Candidates:
        """Return the expected reward and dollars of each arm for a request."""
        ...

    def prepare(self, state: RouterState, choice: Choice) -> bool:
        """Prepare a decision; return whether the arms' predictions changed."""
        ...

    def choose(self, state: RouterState, choice: Choice) -> None:
        """Rule out the arms that the budget can't pay for, complete the scores of all arms, and
        choose an arm that is not excluded: set `choice.k`, `choice.why` and `choice.propensity`.
        `choice.reason` says where no arm would have been left.
        """
        ...

    def chance_of(self, state: RouterState, choice: Choice, k: int) -> float:
        """Return the probability with which `choose` would have chosen the k-th arm, which is not
        the chosen one."""
        ...

    def learn(
        self, state: RouterState, arm: Arm, record: RequestRecord, x: Vector, reward: float
    ) -> float:
        """Learn a request's first reward; return the `forgotten` of the arm's regression at that
        time.
        """
        ...

    def bill(
        self, state: RouterState, costs: CostModel, ratio: float, known: float, x: Vector | None
    ) -> None:
        """Learn a request's first bill, as ratio to its list price; see `CostModel.observe`."""
        ...

    def pacer(self, state: RouterState, config: RouterConfig) -> Pacer:
        """Return the pacer to be used from now on: the present pacer if it can go on."""
        ...

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """Return the random generator to be used from now on: the present one if it can go on."""
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
    """One router's state: its totals, its declaration, and what the router has learned.

    `redeclaring.declare` adds the arms. Requests are stored outside, see `RequestRecord`.

    Attributes:
        config: the declaration in force; policy: the policy of its profile.
        arms: the knowledge of every model.
        pacer: the pacer, which spends the budget.
        capabilities: the router's capabilities, in the order of `registered.KINDS`; hooks: the
            hooks that events call.
        journal: changes since the state was last written.
        chance: random generator of posterior samples, ties, probes and pulls.
        newcomers: watch over models that the budget can't pay for; not durable.
        since: events applied since the last decision, in order.
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
        """Return the router's capability of a kind; None if it has none."""
        return next((one for one in self.capabilities if isinstance(one, kind)), None)

    def put_in_force(self, config: RouterConfig, policy: Policy) -> None:
        """Replace the declaration, the policy, the pacer and the random generator. Debts in
        dollars stay.
        """
        pacer, chance = policy.pacer(self, config), policy.chance(self, config)
        solved = pacer.solves or self.arms.beside is not None
        # A new pacer solves for its prices without a history.
        if solved != (self.arms.window is not None) or not pacer.follows(self.pacer):
            self.arms.begin_window(solved=solved)
        self.config, self.policy, self.pacer, self.chance = config, policy, pacer, chance
        if pacer.budget_usd is None:
            self.newcomers = Newcomers()
        self.journal.pieces.add(CONFIG)
