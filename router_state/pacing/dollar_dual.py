"""The live profile's pacer: a penalty linear in expected dollars, its price found from the last
contexts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from router_state.alert import Alert
from router_state.arms import Arms
from router_state.config import Matrix, Vector
from router_state.journal import Journal
from router_state.pacing.dual import solve_dual
from router_state.pacing.pacer import Allowance, Terms
from router_state.pacing.window import Window
from router_state.policies import eligibility
from router_state.policies.eligibility import Excluded
from router_state.policies.scoring import Weights
from router_state.state.framing import Json

EVERY = 8
"""Decisions that one solution serves; from 1 to 16 it makes no difference (docs/algorithm.md)."""
LEAP = 20.0
"""Budgets by which one booking must move the debt for λ_t to answer before the next decision."""
HORIZON = 100.0
"""Requests over which a debt of `SAVED` or more is paid back; from 50 to 200 it makes no difference
(docs/algorithm.md)."""
IDLE = 6
"""Solutions in a row at which the budget does not bind, each of a draw of its own, up to which what
was saved is kept: one draw that sees nothing worth its price is no reason to give the money up.
Where it never binds nothing is kept, so that a price that comes back is met at once."""
AT_STAKE = 25.0
"""Budgets that calls of a model whose cost is not known may cost, as far as they can be foreseen,
until its next bill."""
CLOSE_ENOUGH = 0.005
"""Share of the target that a solution may leave: far less than what one draw moves."""
LEAST, MOST = 0.25, 2.0
"""Bounds of what a request may cost on average while debts are paid or savings spent, in
budgets."""
SAVED = 25.0
"""Budgets that may be saved: spent within a thousand requests they are half of 5 %, the other half
is for prompts that turn out dearer than expected (benchmarks.elsewhere, in turn). Up to as many are
owed or saved by chance, and left to it in part, see `_solve`."""
CREDIT = 50.0
"""Budgets that one call may be expected to cost."""
OVERDUE = 200.0
"""Requests of nothing but the cheapest models within which a debt is to be paid back."""
LEAST_PAID = 0.5
"""Share of what can be saved that a debt takes at least where it needs more of them."""
UNREACHABLE = 1e6
"""λ_t where no price of a dollar meets the budget."""
MOST_PER_DOLLAR = 1e300
"""Reward per dollar; times the dearest call it is still finite, whatever the budget is."""
UNREACHABLE_AT_MOST = 0.02
"""Probability that another model costs less than the budget after all, up to which the alert is
raised."""


class DualPacer:
    """Paces spend by a penalty linear in expected dollars: λ_t·ê/B.

    Attributes:
        lambda_t: dual variable, dimensionless: the reward that one budget's worth of dollars must
            earn.
        debt_usd: Σ (charged − budget) over the decisions.
        target_usd: mean cost per request that λ_t was last solved for.
        stale: decisions since, with the next one; above `EVERY` it is solved anew.
        idle: solutions in a row at which the budget did not bind, at most `IDLE`.
        unreachable: whether even the cheapest models cost more than the budget.
        window: the contexts to solve over.
    """

    __slots__ = (
        "_journal",
        "budget_usd",
        "debt_usd",
        "idle",
        "lambda_t",
        "stale",
        "target_usd",
        "unreachable",
        "window",
    )

    def __init__(self, budget_usd: float, window: Window, journal: Journal) -> None:
        """Start without a history."""
        self.budget_usd, self.window, self._journal = budget_usd, window, journal
        self.lambda_t = self.debt_usd = self.target_usd = 0.0
        # The first decision solves.
        self.stale, self.idle, self.unreachable = EVERY, 0, False

    @property
    def unbound(self) -> bool:
        """Whether the budget has not bound for `IDLE` solutions in a row."""
        return self.idle >= IDLE

    def set_budget(self, budget_usd: float) -> None:
        """Pace another budget from the next decision on; what is owed in dollars stays owed."""
        if budget_usd != self.budget_usd:
            self.budget_usd, self.stale = budget_usd, EVERY

    def weigh(
        self,
        arms: Arms,
        x: Vector,
        *,
        lambda_c: float,
        limited_to: frozenset[str] | None,
        now: float,
    ) -> Weights:
        """See Pacer; takes the context into the window, and solves again if it is time."""
        slot = self.window.push(x, limited_to)
        if arms.tokens.in_use:
            arms.tokens.place(slot)
        self.stale = 1 + (EVERY if self._journal.jumped else self.stale)
        # In a window of few contexts each one changes the answer.
        if self.stale > EVERY or self.window.size < EVERY:
            self._solve(arms, now=now)
        self._journal.jumped = False
        return (
            self.lambda_t,
            lambda_c,
            min(self.lambda_t * self.window.price / self.budget_usd, MOST_PER_DOLLAR),
        )

    def _solve(self, arms: Arms, *, now: float) -> None:
        """Find λ_t anew: the smallest at which the mean cost of the window's winners is within the
        target.

        The target is the budget, less what is owed and more what was saved, spread over some
        hundred requests; of what is below `SAVED` budgets a smaller part the less it is: bills
        scatter, and what one of them has taken the next ones give back. To pay it at once costs
        quality where the models that are cheaper are worse, and buys nothing.

        While the budget does not bind no credit is kept, so that a price that comes back is met at
        once.
        """
        budget = self.budget_usd
        self.stale = 1
        owed = self.debt_usd / budget
        share = 1.0 - owed * min(abs(owed) / SAVED, 1.0) / HORIZON
        self.target_usd = budget * min(max(share, LEAST), MOST)
        scores, costs = self.window.candidates(arms)
        if self.debt_usd > 0.0:
            self.target_usd = max(self.target_usd, self._bearable(costs))
        per_dollar = solve_dual(
            scores, costs, target=self.target_usd, start=self.lambda_t / budget, within=CLOSE_ENOUGH
        )
        self.lambda_t = UNREACHABLE if per_dollar is None else min(per_dollar * budget, UNREACHABLE)
        # Only then is there anything to say: the cheapest models are dear, or were.
        if per_dollar is None or self.unreachable:
            self._review(arms, costs, now=now)
        # What is saved beyond that is given up: it would be overspent within a thousand requests.
        self.debt_usd = max(self.debt_usd, -SAVED * budget)
        self.idle = min(self.idle + 1, IDLE) if self.lambda_t == 0.0 else 0
        if self.idle >= IDLE:
            self.debt_usd = max(self.debt_usd, 0.0)

    def _bearable(self, costs: Matrix) -> float:
        """Return what a request may cost on average however large the debt is, given the window's
        expected costs, shape (size, K).

        All that the cheapest models save pays it back while that takes few requests. Where the
        budget is hardly above them it takes thousands, in which every request would be answered
        worse to save next to nothing: then a share of it.
        """
        # Of a row for each arm: entry by entry of K it would take ten times as long.
        lowest = np.minimum.reduce(costs.T.copy())
        saved = max(self.budget_usd - float(np.add.reduce(lowest)) / len(lowest), 0.0)
        return self.budget_usd - saved * min(max(OVERDUE * saved / self.debt_usd, LEAST_PAID), 1.0)

    def _review(self, arms: Arms, costs: Matrix, *, now: float) -> None:
        """Raise an alert when even the cheapest models cost more than the budget on the window's
        prompts, shape (size, K), beyond what chance may have made of their bills, and no other may
        cost less; allow the next one when they do not."""
        budget, at = self.budget_usd, costs.argmin(1)
        # The one that is cheapest most often stands for all: its bills say how sure the mean is.
        cheapest = arms[int(np.bincount(at).argmax())]
        lowest = costs.min(1)
        cheapest_usd = float(lowest.mean())
        if cheapest_usd <= budget:
            self.unreachable = False
            return
        if (
            not self.unreachable
            and cheapest.costs.surely_above(
                budget,
                arms.bills.relative_deviation,
                mean_usd=cheapest_usd,
                error=float(lowest.std()) / (cheapest_usd * math.sqrt(len(lowest))),
            )
            and self._may_be_less(arms, costs) < UNREACHABLE_AT_MOST
        ):
            self.unreachable = True
            self._journal.alerts.append(
                Alert(
                    kind="budget_unreachable",
                    model=cheapest.name,
                    direction="up",
                    size=cheapest_usd / budget,
                    since=now,
                    observed_at=now,
                    evidence={"cheapest_usd": cheapest_usd, "budget_usd_per_request": budget},
                )
            )

    def _may_be_less(self, arms: Arms, costs: Matrix) -> float:
        """Return how probable it is, at most, that a model costs less than the budget on the
        window's prompts, shape (size, K): one that has few bills may, and is not yet known to."""
        scatter, budget = arms.bills.relative_deviation, self.budget_usd
        return sum(
            [
                model.chance_below(budget, mean, scatter)
                for mean, model in zip(costs.mean(0).tolist(), arms.costs, strict=True)
            ],
            0.0,
        )

    def admit(
        self, arms: Arms, excluded: Excluded, costs: list[float]
    ) -> tuple[Excluded, str | None]:
        """See Pacer; no single call is to cost more than may be saved, and few are made of models
        whose cost is not known."""
        excluded = eligibility.within_reach(arms, excluded, costs, usd=CREDIT * self.budget_usd)
        return eligibility.within_stake(arms, excluded, costs, usd=AT_STAKE * self.budget_usd), None

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""
        self._charge(expected_usd - self.budget_usd)

    def settle(
        self, cost_usd: float, *, charged_usd: float, first: bool, committed: bool, age: int
    ) -> None:
        """See Pacer."""
        # Where decisions commit nothing, the first bill brings its request's budget with it.
        self._charge(cost_usd - (self.budget_usd if first and not committed else charged_usd))

    def _charge(self, usd: float) -> None:
        """Add to the debt; λ_t answers what moves it by several budgets before the next
        decision."""
        self.debt_usd += usd
        if abs(usd) > LEAP * self.budget_usd:
            self.stale = EVERY

    def allowance(self) -> Allowance:
        """See Pacer: for a pull as much as may be saved, for a probe twice that, and so while
        nothing binds."""
        probe = HORIZON * self.budget_usd - self.debt_usd
        return Allowance(
            probe, CREDIT * self.budget_usd - self.debt_usd if self.lambda_t > 0.0 else probe
        )

    def terms(self) -> Terms:
        """See Pacer."""
        return {
            "debt_usd": self.debt_usd,
            "target_usd": self.target_usd,
            "window": self.window.size,
        }

    def scalars(self) -> tuple[float, float, float, int]:
        """Return λ_t, debt, target and how stale λ_t is: one that is to be solved anew at once is
        as stale as can be."""
        return (
            self.lambda_t,
            self.debt_usd,
            self.target_usd,
            EVERY if self._journal.jumped else self.stale,
        )

    def pack(self) -> dict[str, object]:
        """See Pacer; the window's contexts are pieces of their own."""
        window = self.window
        return {
            "dual": self.scalars(),
            "size": window.size,
            "next": window.next,
            "idle": self.idle,
        }

    def restore(self, scalars: Sequence[Json], *, idle: int) -> None:
        """Fill in what `pack` returned."""
        self.lambda_t, self.debt_usd, self.target_usd, self.stale = scalars
        self.idle = idle
