"""Keep the numbers of one router for its page: sums, bins and the last news."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from doors.console.wanted_labels import Labelling, WantedLabels
from drawing.alert_words import sentence
from drawing.declaration_changes import News, Portfolio
from drawing.pareto import Pareto
from ground.json_values import Document
from router_state.cache_price import usd_of
from router_state.config import Price
from router_state.sources.source_labels import SourceLabel
from schemas import (
    AlertRaised,
    CostReported,
    EventRefused,
    LambdaUpdated,
    RewardObserved,
    RouteDecided,
    RouterDeclared,
)
from watching.dashboard.declared_changes import Declarations
from watching.dashboard.labels_in_force import sources_of, take_label
from watching.dashboard.router_charts import Charts
from watching.joined import Request
from watching.tally import Tally, budget_of, paid_per_budget

NEWS_KEPT = 40
"""Alerts and declarations that a page lists beside its curves."""
ENDS = {"drift": "recovered", "model_down": "model_back"}
"""Kind of alert that ends the condition of another kind."""
RATE_SECONDS = 5.0
"""Seconds over which a rate is measured, at most twice as many."""


class Money(NamedTuple):
    """Dollars and bills in a published state."""

    spend_usd: float
    settled: int


@dataclass(slots=True)
class RouterView:
    """The dashboard's numbers of a router: a few kilobytes, whatever its traffic.

    Attributes:
        state: the last state that a worker published.
        first: dollars and bills in the first state that was seen.
        first_at: time of the first decision that was seen.
        tally: decisions with their bills and labels, one of each per request.
        suspects, down: models under suspicion, and models that do not answer, with the reason and
            the time of begin.
        wanted: requests that people are asked to label.
    """

    router_id: str
    state: LambdaUpdated | None = None
    first: Money | None = None
    first_at: datetime | None = None
    tally: Tally = field(default_factory=Tally)
    alarms: int = 0
    refused: int = 0
    version: int = 0
    suspects: dict[str, dict[str, object]] = field(default_factory=dict)
    down: dict[str, dict[str, object]] = field(default_factory=dict)
    news: deque[News] = field(default_factory=lambda: deque(maxlen=NEWS_KEPT))
    charts: Charts = field(default_factory=Charts)
    declarations: Declarations = field(default_factory=Declarations)
    wanted: WantedLabels = field(default_factory=WantedLabels)
    _samples: tuple[tuple[float, int], ...] = ()

    @property
    def declaration_status(self) -> Document:
        """The status of the newest declaration: `in_force`, `waiting` or `refused`, and why."""
        refusal = self.declarations.refusal
        if refusal is None:
            return {"status": "waiting" if self.declarations.waits else "in_force"}
        return {
            "status": "refused",
            "offset": refusal.offset,
            "reason": refusal.reason,
            "message": refusal.message,
        }

    @property
    def labelling(self) -> Labelling:
        """The part of the router's declaration that says how people label."""
        declared = self.declared
        return Labelling() if declared is None else Labelling.of(declared)

    @property
    def declared(self) -> Portfolio | None:
        """The declaration in force."""
        return self.declarations.newest

    def take_state(self, state: LambdaUpdated, *, at: float) -> None:
        """Apply a state that a worker published."""
        before = self.state
        if before is not None and state.observed_at < before.observed_at:
            return
        if self.first is None:
            # Savings count from the first sight; the published state may begin years before.
            self.first = Money(state.spend_usd, state.settled)
        # Charts begin at the first decision: a router may be declared long before it is asked.
        if state.decided:
            self.charts.bins.put(at, "lambda_t", state.lambda_t)
            if state.budget_usd_per_request is not None:
                self.charts.bins.put(at, "budget_usd", state.budget_usd_per_request)
        if before is not None:
            self.charts.bins.add(at, "spend_usd", state.spend_usd - before.spend_usd)
            self.charts.bins.add(at, "settled", state.settled - before.settled)
        self.state = state
        self._sample(state.decided, at)
        self.news.extend(self.declarations.acknowledge(state.config_offset, at=at))
        self.version += 1

    def take_declaration(
        self, offset: int, router: RouterDeclared | None, *, at: float, again: bool = False
    ) -> None:
        """Apply a record of `pb.routers`, which counts once a worker has put it in force."""
        known = None if self.state is None else self.state.config_offset
        self.news.extend(self.declarations.add(offset, router, at=at, known=known, again=again))
        self.version += 1

    def begin_anew(self) -> None:
        """Forget the decisions of an earlier, removed router of this name."""
        self.tally, self.charts, self.first_at = Tally(), Charts(), None
        self.wanted = WantedLabels()

    def take_decision(self, decision: RouteDecided, *, at: float) -> None:
        """Apply a request's first decision."""
        self.first_at = self.first_at or decision.decided_at
        self.tally.decide(decision)
        self.charts.decide(decision.model, at=at)
        self.version += 1

    def take_label(
        self, event: RewardObserved, request: Request, *, source: str, rank: int, at: float
    ) -> None:
        """Apply a label as the core does: by its source where sources are declared, else by its
        rank. A label that says nothing new changes nothing.

        Args:
            source, rank: of the label; other ones than the event's where it is of a session.
        """
        plan, number = request.plan, _rewarded(event, request)
        if number is None:
            return
        before = request.label
        label = SourceLabel(event.reward, rank, event.revision, attempt=number)
        declared = sources_of(self.declared and self.declared.sources)
        news, reward, now = take_label(request, source, label, declared)
        of = now if plan is None or before is None else plan.labelled
        now = of if reward is None else now
        if not news or (reward == before and now == of):
            return
        if now != of:
            self.tally.label(request, None, called=request.called(of))
        self.tally.label(request, reward, called=request.called(now))
        if plan is not None:
            plan.labelled = now
        self.charts.bins.add(at, "reward", (reward or 0.0) - (before or 0.0))
        if (reward is None) != (before is None):
            self.charts.bins.add(at, "rewarded", 1.0 if before is None else -1.0)
        self.version += 1

    def take_bill(self, event: CostReported, request: Request) -> None:
        """Apply a bill. Here its dollars count only for the model; the router's are in the
        published state.
        """
        if request.plan is not None:
            self._take_call(event, request)
            return
        called = self.tally.models.get(event.model or request.model)
        if called is not None and event.revision > request.bill_revision:
            called.called += 1
            called.answered += event.status in (None, "ok")
            self.version += 1
        cost_usd = self._dollars(event, request.model)
        if (
            event.model not in (None, request.model)
            or event.revision <= request.bill_revision
            or cost_usd is None
        ):
            return
        self.tally.bill(request, cost_usd)
        request.bill_revision = event.revision
        self.version += 1

    def take_verdict(self, event: RewardObserved, request: Request) -> None:
        """Apply a verifier's verdict on a call of the request's plan."""
        plan = request.plan
        if plan is None:
            return
        before = plan.went_on
        if plan.judge(event):
            self.tally.plans.move(plan, before)
            if plan.bills:
                self.tally.charge(request)
            self.version += 1

    def _take_call(self, event: CostReported, request: Request) -> None:
        """Apply the bill of one call of the request's plan."""
        plan, number = request.plan, event.attempt or 0
        if plan is None or number not in plan:
            return
        model = plan.steps[number].model
        cost_usd = self._dollars(event, model)
        if event.model not in (None, model) or cost_usd is None:
            return
        earlier, went = plan.bills.get(number), plan.went_on
        if plan.bill(event, cost_usd):
            self.tally.plans.move(plan, went)
            called = self.tally.model(model)
            called.called += 1
            called.answered += event.status in (None, "ok")
            before = None if earlier is None else earlier[1]
            self.tally.bill_call(request, number, cost_usd, before=before)
            self.version += 1

    def take_alert(self, alert: AlertRaised, *, at: float) -> None:
        """Apply an alert. A model is suspected from a drift to its recovery, and down until it
        answers again.
        """
        kind, text = alert.kind.value, sentence(alert)
        self.alarms += kind not in ENDS.values()
        for begins, open_ones in (("drift", self.suspects), ("model_down", self.down)):
            if alert.model is not None and kind == begins:
                open_ones[alert.model] = {"text": text, "since": alert.since.timestamp()}
            elif alert.model is not None and kind == ENDS[begins]:
                open_ones.pop(alert.model, None)
        self.news.append(News(at, kind, alert.model, text))
        self.version += 1

    def take_refusal(self, refusal: EventRefused, *, at: float) -> None:
        """Count an event that was refused. If it is a declaration, keep the reason."""
        self.refused += 1
        if refusal.topic == "routers":
            self.declarations.refuse(refusal)
            why = f"{refusal.reason} ({refusal.message})" if refusal.message else refusal.reason
            text = f"a declaration was refused: {why}"
            self.news.append(News(at, "refused", None, text))
        self.version += 1

    def rate(self, now: float) -> float:
        """Return decisions per second over the last five to ten seconds."""
        if self.state is None or not self._samples or now - self._samples[1][0] > 2 * RATE_SECONDS:
            return 0.0
        (begin, decided), end = self._samples[0], now
        return max(0, self.state.decided - decided) / max(end - begin, 1.0)

    def _sample(self, decided: int, at: float) -> None:
        """Keep two counts, five seconds apart."""
        kept = self._samples
        if not kept or at - kept[1][0] >= 2 * RATE_SECONDS:
            self._samples = ((at, decided), (at, decided))
        elif at - kept[1][0] >= RATE_SECONDS:
            self._samples = (kept[1], (at, decided))

    def _dollars(self, event: CostReported, model: str) -> float | None:
        """Return a bill in dollars; None where it names tokens of a model whose prices are not
        known.
        """
        if event.cost_usd is not None:
            # A call without an answer costs nothing even where answers are billed in tokens, whose
            # dollars are not known without prices.
            is_known = self.declared or event.cost_usd > 0.0 or event.status in (None, "ok")
            return event.cost_usd if is_known else None
        declared = self.declared
        prices = None if declared is None else declared.prices.get(model)
        if declared is None or prices is None or event.tokens is None:
            return None
        into, out = event.tokens
        # Tokens written to a cache count as normal input, as a decision does not tell them.
        return usd_of(
            declared.long_inputs.get(model, Price(*prices)),
            input_tokens=into,
            output_tokens=out,
            cached=event.cached_input_tokens,
            cache=declared.caches.get(model),
        )

    @property
    def spend_per_budget(self) -> float | None:
        """Return the mean bill ÷ budget, as the worker publishes it."""
        return paid_per_budget(self.state)

    @property
    def cost_usd(self) -> float | None:
        """Return the mean bill since the dashboard saw the router first."""
        if self.state is None or self.first is None or self.state.settled <= self.first.settled:
            return None
        return (self.state.spend_usd - self.first.spend_usd) / (
            self.state.settled - self.first.settled
        )

    def pareto(self) -> Pareto:
        """Return the picture of the router and of the models that it may choose."""
        names = self.declared.prices if self.declared else self.tally.models
        return self.tally.pareto(names, budget_usd=budget_of(self.state))


def _rewarded(event: RewardObserved, request: Request) -> int | None:
    """Return the number of the call that a reward is of; None: its model was not decided.

    A label of a fallback tells nothing about the decided model.
    """
    if request.plan is not None:
        return request.plan.rewarded(event)
    return 0 if event.model in (None, request.model) else None
