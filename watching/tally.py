"""Estimate the mean reward and cost of a router and of each of its models, from decisions, bills
and labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from drawing.declaration_changes import Prices
from drawing.pareto import Pareto, Point
from schemas import LambdaUpdated, RouteDecided
from studies.simulate.limits import ENOUGH, OUT_OF_BALANCE, ROUNDING, Z95
from watching.joined import Request
from watching.planned_requests import Plans

RECENT = 1.0 / 200.0
"""Weight of the newest decision in an expectation: a memory of some 200 decisions."""

FEW = 10
"""Fewest labels, and fewest bills, for which a router is compared with its models: a mean of fewer
scatters more than most models differ.
"""


@dataclass(slots=True)
class Mean:
    """A mean with its 95 % interval."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def move(self, value: float | None, *, before: float | None) -> None:
        """Add a value, or replace an earlier one; None removes the earlier one."""
        self.n += (value is not None) - (before is not None)
        self.total += (value or 0.0) - (before or 0.0)
        self.squares += (value or 0.0) ** 2 - (before or 0.0) ** 2

    @property
    def value(self) -> float | None:
        """Return the mean; None before the first value."""
        return self.total / self.n if self.n else None

    @property
    def doubt(self) -> float | None:
        """Return half the width of the mean's 95 % interval; None for fewer than two values."""
        return None if self.n < 2 else half_width(self.total, self.squares, self.n)


def half_width(total: float, squares: float, n: float) -> float:
    """Return half of the 95 % interval of a mean, from sums over n values."""
    variance = max(0.0, squares / n - (total / n) ** 2)
    return Z95 * math.sqrt(variance / max(n - 1.0, 1.0))


@dataclass(slots=True)
class Always:
    """Estimate the mean outcome of always calling one model, over the decided requests.

    `filled` is the mean of known outcomes and, elsewhere, of expected outcomes. `robust` is the
    mean of expected outcomes plus the mean of w·(outcome − expected), w = 1{called}/propensity
    (doubly robust, Dudík et al. 2011, arXiv:1103.4601). Outcomes are assumed to be missing at
    random.

    Attributes:
        rated, expected: number of decisions with the model as a candidate, and sum of the outcomes
            that they expected; `now`: mean of these expectations that forgets older decisions.
        weight, weights: Σw and Σw²; gap, gaps: Σw·(outcome − expected) and the sum of its squares.
        missed: Σ(outcome − expected).
    """

    rated: int = 0
    expected: float = 0.0
    now: float = 0.0
    weight: float = 0.0
    weights: float = 0.0
    gap: float = 0.0
    gaps: float = 0.0
    missed: float = 0.0

    def expect(self, value: float) -> None:
        """Add the outcome that a decision expected."""
        self.rated += 1
        self.expected += value
        # A plain mean at first, so that the first decision does not weigh too much.
        self.now += max(RECENT, 1.0 / self.rated) * (value - self.now)

    def observe(
        self, value: float | None, expected: float, propensity: float, *, before: float | None
    ) -> None:
        """Add the outcome of a call, or replace an earlier one; `value` None: the outcome is
        withdrawn.
        """
        # A call without a logged propensity tells nothing about a policy that always calls the
        # model.
        weight = 1.0 / propensity if propensity > 0.0 else 0.0
        for times, outcome in ((-1.0, before), (1.0, value)):
            if outcome is not None:
                gap = weight * (outcome - expected)
                self.missed += times * (outcome - expected)
                self.weight += times * weight
                self.weights += times * weight * weight
                self.gap += times * gap
                self.gaps += times * gap * gap

    def filled(self, told: float) -> float:
        """Return the mean over all decisions.

        Args:
            told: share of the router's requests whose outcome is known.
        """
        return (self.expected + (self.missed / told if told > 0.0 else 0.0)) / self.rated

    def robust(self, told: float) -> tuple[float, float] | None:
        """Return the estimated mean outcome if every request called the model, and half of its 95 %
        interval; None where too few calls support an estimate.

        Args:
            told: share of the router's requests whose outcome is known.
        """
        n = told * self.rated
        if n < ENOUGH or self.weight**2 < ENOUGH * self.weights or not self.weights:
            return None
        # Weights average 1 where every request had its logged chance to call the model.
        sure = max(half_width(self.weight, self.weights, n), ROUNDING)
        if abs(self.weight / n - 1.0) > OUT_OF_BALANCE * sure:
            return None
        return self.expected / self.rated + self.gap / n, half_width(self.gap, self.gaps, n)


@dataclass(slots=True)
class ModelTally:
    """One model of a router.

    Attributes:
        chosen: number of decisions for the model; labels, bills: labels and bills of its calls.
        deviation_now: the standard deviation of the expected quality; None: not known.
        called, answered: billed calls, and the answered ones among them.
    """

    chosen: int = 0
    called: int = 0
    answered: int = 0
    quality: Always = field(default_factory=Always)
    cost: Always = field(default_factory=Always)
    deviation_now: float | None = None
    labels: Mean = field(default_factory=Mean)
    bills: Mean = field(default_factory=Mean)

    def point(self, name: str, *, labelled: float, billed: float) -> Point:
        """Return the model's point in the picture: the doubly robust estimate where calls support
        it, else known outcomes of requests that it answered and expected outcomes of the others.

        Args:
            labelled, billed: shares of the router's requests that have a label, and a bill.
        """
        quality, cost = self.quality.robust(labelled), self.cost.robust(billed)
        off = None
        if quality is None and self.deviation_now is not None:
            # Labelled calls are certain; the others keep their uncertainty.
            off = Z95 * self.deviation_now * (1.0 - min(1.0, self.labels.n / self.quality.rated))
        return Point(
            name,
            cost_usd=max(0.0, self.cost.filled(billed) if cost is None else cost[0]),
            # Few labels, extrapolated to all requests, are not reliable.
            quality=min(
                1.0, max(0.0, self.quality.filled(labelled) if quality is None else quality[0])
            ),
            off=off if quality is None else quality[1],
            cost_off=None if cost is None else cost[1],
            measured=self.labels.n >= ENOUGH,
        )

    def shown(self, name: str, prices: Prices | None, share: float | None) -> dict[str, object]:
        """Return the model's numbers for a page."""
        return {
            "model": name,
            "prices": prices,
            "share": share,
            "expected_cost_usd": self.cost.now if self.cost.rated else None,
            "expected_quality": self.quality.now if self.quality.rated else None,
            "deviation": self.deviation_now,
            "cost_usd": self.bills.value,
            "quality": self.labels.value,
            "doubt": self.labels.doubt,
            "labels": self.labels.n,
            "answered": self.answered / self.called if self.called else None,
        }


@dataclass(slots=True)
class Tally:
    """The decisions of a router with their bills and labels."""

    decisions: int = 0
    labels: Mean = field(default_factory=Mean)
    bills: Mean = field(default_factory=Mean)
    models: dict[str, ModelTally] = field(default_factory=dict)
    plans: Plans = field(default_factory=Plans)

    def model(self, name: str) -> ModelTally:
        """Return the tally of a model."""
        found = self.models.get(name)
        if found is None:
            found = self.models[name] = ModelTally()
        return found

    def decide(self, decision: RouteDecided) -> None:
        """Add a request's first decision."""
        self.decisions += 1
        self.model(decision.model).chosen += 1
        self.plans.decide(decision)
        for candidate in decision.candidates or ():
            model = self.model(candidate.model)
            model.quality.expect(candidate.mean)
            model.cost.expect(candidate.expected_cost_usd)
            if candidate.deviation is not None:
                start = model.deviation_now
                weight = 1.0 if start is None else max(RECENT, 1.0 / model.quality.rated)
                model.deviation_now = (start or 0.0) + weight * (
                    candidate.deviation - (start or 0.0)
                )

    def label(self, request: Request, reward: float | None, *, called: str | None = None) -> None:
        """Add the label that counts for a request; None: the label was withdrawn.

        Args:
            called: the model of the plan that answered; None: the decided one.
        """
        before, request.label = request.label, reward
        model = self.model(called or request.model)
        for mean in (self.labels, model.labels):
            mean.move(reward, before=before)
        # A plan's answer was returned because of its verdict: it says nothing of all answers.
        if request.plan is None or len(request.plan.steps) == 1:
            model.quality.observe(
                reward, request.expected_reward, request.propensity, before=before
            )

    def bill(self, request: Request, cost_usd: float) -> None:
        """Add the bill that counts for a request."""
        before, request.bill = request.bill, cost_usd
        model = self.model(request.model)
        for mean in (self.bills, model.bills):
            mean.move(cost_usd, before=before)
        model.cost.observe(cost_usd, request.expected_cost_usd, request.propensity, before=before)

    def bill_call(
        self, request: Request, number: int, cost_usd: float, *, before: float | None
    ) -> None:
        """Add the bill of one call of a request's plan; `before` is the call's earlier bill, if
        there is one.
        """
        assert request.plan is not None
        model = self.model(request.plan.steps[number].model)
        model.bills.move(cost_usd, before=before)
        if number == 0:
            model.cost.observe(
                cost_usd, request.expected_cost_usd, request.propensity, before=before
            )
        self.charge(request)

    def charge(self, request: Request) -> None:
        """Count what the calls of a request's plan cost together."""
        assert request.plan is not None
        before, request.bill = request.bill, request.plan.spent_usd
        self.bills.move(request.bill, before=before)

    def pareto(self, names: Iterable[str], *, budget_usd: float | None = None) -> Pareto:
        """Return the points of the chart of quality against cost: these models and the router, over
        the same requests.
        """
        shares = {
            "labelled": self.labels.n / max(self.decisions, 1),
            "billed": self.bills.n / max(self.decisions, 1),
        }
        models = [
            self.models[name].point(name, **shares)
            for name in names
            if name in self.models and self.models[name].quality.rated
        ]
        quality, cost = self.labels.value, self.bills.value
        router = None
        if quality is not None and cost is not None:
            measured = min(self.labels.n, self.bills.n) >= FEW
            doubts = self.labels.doubt, self.bills.doubt
            router = Point("this router", cost, quality, *doubts, measured=measured)
        # No model's reward is known on requests that another model got.
        basis = f"estimated over {self.decisions:,} requests"
        return Pareto(models, router, budget_usd=budget_usd, basis=basis, alone=self._alone(router))

    def _alone(self, router: Point | None) -> Point | None:
        """Return where the router would be with one call a request, as its decisions expected."""
        if router is None or not self.plans.planned:
            return None
        cost_usd = router.cost_usd + self.plans.saved_usd / self.decisions
        quality = router.quality - self.plans.gain / self.decisions
        return Point(
            "without plans", max(0.0, cost_usd), min(1.0, max(0.0, quality)), measured=False
        )


def budget_of(state: LambdaUpdated | None) -> float | None:
    """Return a router's budget per request; None if there is none, or if it depends on the money
    left in a period.
    """
    if state is None or state.budgets or state.floor or not state.budget_usd_per_request:
        return None
    return state.budget_usd_per_request


def paid_per_budget(state: LambdaUpdated | None) -> float | None:
    """Return the mean bill of routed requests ÷ budget. The incumbent's bills are left out, as the
    budget does not pay them. None: there is no budget, or no bill.
    """
    budget = budget_of(state)
    if state is None or budget is None:
        return None
    spent, bills = state.spend_usd, state.settled
    if state.incumbent is not None:
        spent, bills = spent - state.incumbent.spend_usd, bills - state.incumbent.billed
    return spent / bills / budget if bills > 0 else None
