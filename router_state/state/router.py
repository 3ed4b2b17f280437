"""Everything a router has learned and owes: the state that the engine moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from router_state.arms import Arms
from router_state.availability import Availability
from router_state.changes import CONFIG, Journal
from router_state.config import RouterConfig
from router_state.kernel import Books, Chance, DollarDual, Pacer, Unpaced, Window
from router_state.periods.ledger import PIECE, Ledger
from router_state.periods.traffic import SHAPE
from router_state.policies.newcomers import Newcomers
from router_state.sessions import Sessions
from router_state.since import Since

if TYPE_CHECKING:
    from router_state.policies.policy import Policy

Chances: TypeAlias = Chance | np.random.Generator
"""Source of a router's random draws; its profile chooses."""


class RouterState(Books):
    """One router's state, the books among it. It begins without arms: `Engine.configure` adds them.
    Requests are remembered beside it, see `RequestRecord`.

    Attributes:
        since: what was applied since the last decision, in its order.
        sessions: conversations.
    """

    __slots__ = ("sessions", "since")
    if TYPE_CHECKING:
        arms: Arms

    def __init__(self, config: RouterConfig) -> None:
        super().__init__()
        self.config, self.journal = config, Journal()
        self.chance = Chance(config.knobs.seed)
        self.arms, self.pacer = Arms(config.dimensions, self.journal), Unpaced()
        self.buckets, self.ledger, self.newcomers = [], None, Newcomers()
        self.since, self.availability = Since(), Availability(self.journal)
        self.sessions = Sessions(self.journal)

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
        if _window(pacer) is not _window(self.pacer):
            self.arms.begin_window()
        self.config, self.policy, self.pacer, self.chance = config, policy, pacer, chance
        if pacer.budget_usd is None:
            self.newcomers = Newcomers()
        self.journal.pieces.add(CONFIG)


def _window(pacer: Pacer) -> Window | None:
    return pacer.window if isinstance(pacer, DollarDual) else None
