"""Spending a budget: what every pacer does, a router without a budget, and the paper's pacer."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypedDict

from router_state.arms import Arms
from router_state.config import Vector
from router_state.policies import eligibility
from router_state.policies.eligibility import Excluded
from router_state.policies.scoring import Weights

EMA_STEP = 0.05
"""Share of the newest cost in the mean (ParetoBandit Eq. 3)."""
DUAL_STEP = 0.05
"""Step of λ_t, per budget that the mean is away from the budget (Eq. 4)."""
LAMBDA_MAX = 5.0
"""Largest λ_t of the paper's pacer (Eq. 4)."""


class Allowance(NamedTuple):
    """What a probe and what a pull may be expected to cost, dollars."""

    probe: float = math.inf
    pull: float = math.inf


UNLIMITED = Allowance()
"""Of a router without a dollar dual: nothing is borrowed, so nothing is limited."""


class Terms(TypedDict, total=False):
    """What made λ_t, by the names of `pb.lambda`."""

    cost_ema_usd: float
    debt_usd: float
    target_usd: float
    window: int


class Pacer(Protocol):
    """Spends a budget over requests; it and its budget are one object.

    Attributes:
        budget_usd: dollars per request; None: there is no budget.
        lambda_t: dual variable as it was last used, dimensionless.
        unbound: whether money has long been no limit.
    """

    @property
    def budget_usd(self) -> float | None: ...

    @property
    def lambda_t(self) -> float: ...

    @property
    def unbound(self) -> bool: ...

    def weigh(
        self,
        arms: Arms,
        x: Vector,
        *,
        lambda_c: float,
        limited_to: frozenset[str] | None,
        now: float,
    ) -> Weights:
        """Return what money weighs in the next request's scores.

        Args:
            x: its context, shape (d,).
            lambda_c: what a price weighs besides.
            limited_to: the models that it may be given to, None: all.
            now: seconds since the epoch.
        """
        ...

    def admit(
        self, arms: Arms, excluded: Excluded, costs: list[float]
    ) -> tuple[Excluded, str | None]:
        """Rule out arms that the budget has no place for, given the expected costs; the reason says
        so where it can't be helped."""
        ...

    def commit(self, expected_usd: float) -> None:
        """Charge a decision's expected cost."""
        ...

    def settle(
        self, cost_usd: float, *, charged_usd: float, first: bool, committed: bool, age: int
    ) -> None:
        """Put a bill in place of what was charged.

        Args:
            charged_usd: its expectation or, where it is not the `first`, the bill before.
            committed: whether the expectation was charged at the decision.
            age: decisions since.
        """
        ...

    def allowance(self) -> Allowance:
        """Return what may be borrowed for probes and pulls."""
        ...

    def terms(self) -> Terms:
        """Return what made λ_t, by the names of `pb.lambda`."""
        ...

    def pack(self) -> dict[str, object] | None:
        """Return its scalars for the head."""
        ...


class Unpaced:
    """A router without a budget: λ_t is 0, and spend is only counted."""

    __slots__ = ()
    budget_usd: None = None
    lambda_t = 0.0
    unbound = True

    def weigh(
        self,
        arms: Arms,
        x: Vector,
        *,
        lambda_c: float,
        limited_to: frozenset[str] | None,
        now: float,
    ) -> Weights:
        """See Pacer."""
        return 0.0, lambda_c, 0.0

    def admit(
        self, arms: Arms, excluded: Excluded, costs: list[float]
    ) -> tuple[Excluded, str | None]:
        """See Pacer."""
        return excluded, None

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""

    def settle(
        self, cost_usd: float, *, charged_usd: float, first: bool, committed: bool, age: int
    ) -> None:
        """See Pacer."""

    def allowance(self) -> Allowance:
        """See Pacer."""
        return UNLIMITED

    def terms(self) -> Terms:
        """See Pacer."""
        return {}

    def pack(self) -> dict[str, object] | None:
        """See Pacer."""
        return None


class EmaPacer:
    """λ ← clip(λ + 0.05(c̄/B − 1), 0, 5), c̄ ← 0.95c̄ + 0.05c, c̄_0 = B (ParetoBandit Eq. 3–4).

    Attributes:
        cost_ema_usd: c̄, dollars per request.
    """

    __slots__ = ("budget_usd", "cost_ema_usd", "lambda_t")
    unbound = False

    def __init__(
        self, budget_usd: float, *, lambda_t: float = 0.0, cost_ema_usd: float | None = None
    ) -> None:
        """Start by believing that the budget is being met."""
        self.budget_usd, self.lambda_t = budget_usd, lambda_t
        self.cost_ema_usd = budget_usd if cost_ema_usd is None else cost_ema_usd

    def weigh(
        self,
        arms: Arms,
        x: Vector,
        *,
        lambda_c: float,
        limited_to: frozenset[str] | None,
        now: float,
    ) -> Weights:
        """See Pacer."""
        return self.lambda_t, lambda_c + self.lambda_t, 0.0

    def admit(
        self, arms: Arms, excluded: Excluded, costs: list[float]
    ) -> tuple[Excluded, str | None]:
        """See Pacer; a hard ceiling on list prices while λ_t > 0."""
        return (
            eligibility.under_ceiling(arms, excluded, lambda_t=self.lambda_t)
            if self.lambda_t > 0.0
            else (excluded, None)
        )

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""
        self._observe(expected_usd)

    def settle(
        self, cost_usd: float, *, charged_usd: float, first: bool, committed: bool, age: int
    ) -> None:
        """See Pacer; what the mean has left of an expectation is replaced."""
        if committed:
            # What an expectation of `age` decisions ago still weighs in the mean; λ_t, which moved
            # by it, stays.
            left = EMA_STEP * (1.0 - EMA_STEP) ** age
            self.cost_ema_usd = max(0.0, self.cost_ema_usd + left * (cost_usd - charged_usd))
        elif first:
            self._observe(cost_usd)

    def _observe(self, cost_usd: float) -> None:
        self.cost_ema_usd = mean = (1.0 - EMA_STEP) * self.cost_ema_usd + EMA_STEP * cost_usd
        moved = self.lambda_t + DUAL_STEP * (mean / self.budget_usd - 1.0)
        self.lambda_t = 0.0 if moved < 0.0 else LAMBDA_MAX if moved > LAMBDA_MAX else moved

    def allowance(self) -> Allowance:
        """See Pacer."""
        return UNLIMITED

    def terms(self) -> Terms:
        """See Pacer."""
        return {"cost_ema_usd": self.cost_ema_usd}

    def pack(self) -> dict[str, object] | None:
        """See Pacer."""
        return {"ema": [self.lambda_t, self.cost_ema_usd]}
