"""Everything a router has learned and owes: the state that the engine moves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from router_state.alert import Alert
from router_state.arms import Arms
from router_state.caps import Bucket
from router_state.config import RouterConfig
from router_state.dual import DualPacer
from router_state.pacing import EmaPacer


@dataclass(slots=True)
class Forgotten:
    """What the totals of a router still contain of requests that are not remembered any more."""

    requests: int = 0
    bills: int = 0
    rewards: int = 0
    spend_usd: float = 0.0


@dataclass(slots=True)
class RouterState:
    """One router's state. Requests are remembered beside it, see `RequestRecord`.

    Attributes:
        t: the clock of forgetting: requests decided or, on the feedback clock, rewards learned.
        seq: decisions made; the last one's number.
        settled: decisions whose bill has come; expired: those whose bill did not come in time.
        rewards_applied: decisions that have a reward.
        spend_usd: Σ of the bills of decided requests; unmatched_cost_usd: Σ of bills without a request.
        committed_usd: Σ of expected costs of `open_commitments` {request_id: decided_at, in order of seq}.
        latest: when something last happened, in seconds since the epoch.
        unreachable: whether even the cheapest models cost more than the budget.
        pacer: spends the budget; None without one.
        buckets: what is left of each cap.
        forgotten: the part of `seq`, `settled`, `rewards_applied` and `spend_usd` that no remembered request stands for.
        alerts: raised since the caller last took them.
        touched: names of the array pieces that changed since they were last packed.
    """

    config: RouterConfig
    arms: Arms
    rng: np.random.Generator
    t: int = 0
    seq: int = 0
    settled: int = 0
    expired: int = 0
    rewards_applied: int = 0
    spend_usd: float = 0.0
    committed_usd: float = 0.0
    unmatched_cost_usd: float = 0.0
    latest: float = 0.0
    unreachable: bool = False
    pacer: EmaPacer | DualPacer | None = None
    buckets: list[Bucket] = field(default_factory=list)
    open_commitments: dict[str, float] = field(default_factory=dict)
    forgotten: Forgotten = field(default_factory=Forgotten)
    alerts: list[Alert] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)

    @classmethod
    def start(cls, config: RouterConfig) -> RouterState:
        """Return the state of a router that has no arms yet; `Engine.configure` adds them."""
        return cls(config=config, arms=Arms(config.dimensions), rng=np.random.default_rng(config.knobs.seed))

    @property
    def in_flight(self) -> int:
        """Decisions whose bill is awaited."""
        return len(self.open_commitments)

    @property
    def lambda_t(self) -> float:
        """The dual variable as it was last used; 0 without a budget."""
        return 0.0 if self.pacer is None else self.pacer.lambda_t

    def pacing_terms(self) -> dict[str, float]:
        """Return what made λ_t, by the names of `pb.lambda`."""
        match self.pacer:
            case None:
                return {}
            case EmaPacer(cost_ema_usd=cost_ema_usd):
                return {"cost_ema_usd": cost_ema_usd}
            case DualPacer(debt_usd=debt_usd, target_usd=target_usd, window=window):
                return {"debt_usd": debt_usd, "target_usd": target_usd, "window": window.size}
