"""Everything a router has learned and owes: the state that the engine moves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from router_state.arms import Arms
from router_state.books import Books
from router_state.caps import Bucket
from router_state.config import RouterConfig
from router_state.dual_pacer import DualPacer
from router_state.journal import CONFIG, Journal
from router_state.newcomers import Newcomers
from router_state.pacing import EmaPacer, Pacer, Unpaced
from router_state.since import Since
from router_state.window import Window


@dataclass(slots=True, kw_only=True)
class RouterState(Books):
    """One router's state, the books among it. Requests are remembered beside it, see
    `RequestRecord`.

    Attributes:
        config: the declaration in force.
        arms: what is known of every model.
        rng: draws ties, probes and pulls.
        journal: what has changed since it was last written.
        t: the clock of forgetting: requests decided or, on the feedback clock, rewards learned.
        latest: when something last happened, in seconds since the epoch.
        pacer: spends the budget.
        buckets: what is left of each cap.
        newcomers: whom the budget has no place for; not kept.
        since: what was applied since the last decision, in its order.
    """

    config: RouterConfig
    arms: Arms
    rng: np.random.Generator
    journal: Journal
    t: int = 0
    latest: float = 0.0
    pacer: Pacer = field(default_factory=Unpaced)
    buckets: list[Bucket] = field(default_factory=list)
    newcomers: Newcomers = field(default_factory=Newcomers)
    since: Since = field(default_factory=Since)

    @classmethod
    def start(cls, config: RouterConfig) -> RouterState:
        """Return the state of a router that has no arms yet; `Engine.configure` adds them."""
        journal = Journal()
        rng = np.random.default_rng(config.knobs.seed)
        return cls(config=config, arms=Arms(config.dimensions, journal), rng=rng, journal=journal)

    @property
    def lambda_t(self) -> float:
        """The dual variable as it was last used; 0 without a budget."""
        return self.pacer.lambda_t

    @property
    def unreachable(self) -> bool:
        """Whether even the cheapest models are known to cost more than the budget."""
        return isinstance(self.pacer, DualPacer) and self.pacer.unreachable

    def tick(self) -> None:
        """Let the clock of forgetting go on by one."""
        self.t += 1

    def put_in_force(self, config: RouterConfig) -> None:
        """Replace the declaration, and start, keep or stop pacing. What is owed in dollars stays
        owed."""
        self.config, budget = config, config.budget_usd_per_request
        if budget is None:
            self.newcomers = Newcomers()
        self.journal.pieces.add(CONFIG)
        pacer, dual = self.pacer, config.knobs.dollar_dual
        if budget is not None and dual and isinstance(pacer, DualPacer):
            pacer.set_budget(budget)
        elif budget is not None and not dual and isinstance(pacer, EmaPacer):
            pacer.budget_usd = budget
        else:
            if isinstance(pacer, DualPacer):
                # Its pieces are to be deleted: a router that gets a budget again starts with a new
                # window.
                pacer.window.give_up()
            self.pacer = (
                Unpaced()
                if budget is None
                else self.new_dual_pacer(budget)
                if dual
                else EmaPacer(budget)
            )

    def new_dual_pacer(self, budget_usd: float) -> DualPacer:
        """Return a pacer without a history that reports to this state's journal."""
        return DualPacer(budget_usd, Window(self.arms.d, self.journal), self.journal)
