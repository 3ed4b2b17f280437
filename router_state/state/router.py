"""Everything a router has learned and owes: the state that the engine moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from router_state.arms import Arms
from router_state.availability import Availability
from router_state.changes import CONFIG, Journal
from router_state.config import RouterConfig
from router_state.kernel import Chance, Pacer, Unpaced
from router_state.periods.ledger import PIECE, Ledger
from router_state.periods.traffic import SHAPE
from router_state.policies.newcomers import Newcomers
from router_state.sessions import Sessions
from router_state.since import Since
from router_state.state.books import Books
from router_state.state.caps import Bucket

if TYPE_CHECKING:
    from router_state.policies.policy import Policy

Chances: TypeAlias = Chance | np.random.Generator
"""Source of a router's random draws; its profile chooses."""


@dataclass(slots=True, kw_only=True)
class RouterState(Books):
    """One router's state, the books among it. Requests are remembered beside it, see
    `RequestRecord`.

    Attributes:
        config: the declaration in force; policy: the one of its profile.
        arms: what is known of every model.
        chance: draws posterior samples, ties, probes and pulls.
        journal: what has changed since it was last written.
        t: the clock of forgetting: decisions under `paper`, rewards learned under `live`.
        latest: when something last happened, in seconds since the epoch.
        pacer: spends the budget.
        buckets: what is left of each cap.
        ledger: what is left of periods, where the router has budgets of them.
        since: what was applied since the last decision, in its order.
        newcomers: whom the budget has no place for; not kept.
        availability: which models answer; sessions: conversations.
    """

    config: RouterConfig
    policy: Policy = field(init=False)
    arms: Arms
    chance: Chances
    journal: Journal
    t: int = 0
    latest: float = 0.0
    pacer: Pacer = field(default_factory=Unpaced)
    buckets: list[Bucket] = field(default_factory=list)
    ledger: Ledger | None = None
    since: Since = field(default_factory=Since)
    newcomers: Newcomers = field(default_factory=Newcomers)
    availability: Availability = field(init=False)
    sessions: Sessions = field(init=False)

    def __post_init__(self) -> None:
        self.availability = Availability(self.journal)
        self.sessions = Sessions(self.journal)

    @classmethod
    def start(cls, config: RouterConfig) -> RouterState:
        """Return the state of a router that has no arms yet; `Engine.configure` adds them."""
        journal = Journal()
        arms, chance = Arms(config.dimensions, journal), Chance(config.knobs.seed)
        return cls(config=config, arms=arms, chance=chance, journal=journal)

    @property
    def lambda_t(self) -> float:
        """The dual variable as it was last used; 0 without a budget."""
        return self.pacer.lambda_t

    @property
    def unreachable(self) -> bool:
        """Tell whether even the cheapest models are known to cost more than the budget."""
        return self.pacer.unreachable

    def declare_spending(self, config: RouterConfig) -> None:
        """Put budgets of a period in force; what was charged stays charged."""
        if config.spending is None:
            if self.ledger is not None:
                self.ledger = None
                self.journal.pieces.update((PIECE, SHAPE))
        elif self.ledger is None:
            self.ledger = Ledger(config.spending, self.journal, born=config.offset)
            self.journal.pieces.update((PIECE, SHAPE))
        else:
            self.ledger.declare(config.spending, born=config.offset)

    def put_in_force(self, config: RouterConfig, policy: Policy) -> None:
        """Replace the declaration, the policy, the pacer and what draws. What is owed in dollars
        stays owed."""
        pacer, chance = policy.pacer(self, config), policy.chance(self, config)
        if pacer is not self.pacer:
            # Its pieces are to be deleted: what paces anew starts without a history.
            self.journal.pieces.update(self.pacer.pieces)
        self.config, self.policy, self.pacer, self.chance = config, policy, pacer, chance
        if pacer.budget_usd is None:
            self.newcomers = Newcomers()
        self.journal.pieces.add(CONFIG)
