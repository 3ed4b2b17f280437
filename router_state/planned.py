"""Apply the bills and verdicts of a request that has a plan: each call has a bill of its own, and a
verdict decides whether the next one is still awaited. For a verdict that is overdue no money is
kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from router_state import feedback, registered
from router_state.billing import Billing
from router_state.changes import APPLIED, DUPLICATE, REVISED, Outcome
from router_state.config import Price
from router_state.errors import (
    AttemptBeyondPlan,
    CostOutOfRange,
    UnknownVerifier,
    UnpricedModel,
    VerdictOutOfRange,
)
from router_state.events import UNANSWERED, Charged, Verified
from router_state.kernel.given import Step
from router_state.plan import NOTHING, Plan
from router_state.record import PLAIN, Call, Records, RequestRecord, Settlement
from router_state.router import RouterState
from router_state.totals import checked_cost


def settle(state: RouterState, record: RequestRecord, event: Charged) -> Outcome:
    """Book the bill of one call of a request that has a plan, or a later revision of it.

    Raises:
        AttemptBeyondPlan: the request's plan has no such call.
        NonFiniteInput, CostOutOfRange, UnpricedModel: as `feedback.settle`.
    """
    plan = _having(record.plan, event.attempt)
    step, made = plan.steps[event.attempt], plan.made[event.attempt]
    called = event.model or step.model
    price = step.price if called == step.model else _price_of(state, called)
    cost_usd = checked_cost(_priced(state, record, event, called, price))
    if made.cost_usd is not None and event.revision <= made.revision:
        return DUPLICATE
    unanswered = event.status in UNANSWERED
    now = structs.replace(made, cost_usd=cost_usd, revision=event.revision, unanswered=unanswered)
    later = plan.with_attempt(event.attempt, now)
    billed = record.bill
    first = billed is None
    before, after = _book(state, event.request_id, record, later, revision=event.revision)
    billing = Billing(
        event,
        record,
        feedback.context_of(state, event.x) if record.x is None else record.x,
        called,
        cost_usd,
        # With this, the difference is the change of what the whole request is charged.
        cost_usd - (after - before),
        first,
        made.cost_usd is not None and not made.unanswered,
        unanswered,
        state.seq,
        state.latest,
    )
    if record.is_paced:
        state.pacer.settle(after, before, first)
    named = event.answered_by is not None
    if not state.hooks.complete and (unanswered or named or record.call != Call(plan=later)):
        registered.begin(state)
    settled, record.bill = record.bill, billed  # hooks see the bill before
    if state.hooks.billed:
        state.hooks.billed(billing)
    record.bill = settled
    redirected = billing.redirected or (made.redirected and event.answered_by is None)
    if redirected != made.redirected and record.call is not None:
        answer = structs.replace(now, redirected=redirected)
        plan = later.with_attempt(event.attempt, answer)
        record.call = structs.replace(record.call, plan=plan)
    if billing.reward is not None:
        feedback.learn_failure(state, billing, billing.reward)
    if billing.redirected and event.attempt == later.labelled:
        feedback.disown(state, billing)
    skipped = unanswered or billing.redirected
    if not billing.answered and not skipped and price is not None:
        lost_usd = made.cost_usd or 0.0  # of tries of this call that failed
        feedback.learn_cost(state, billing, price, lost_usd=lost_usd)
    if record.label is None and event.attempt == later.last:
        record.answered_by = None if called == record.model else called
    record.candidates = record.noted = None
    return APPLIED if made.cost_usd is None else REVISED


def verify(state: RouterState, record: RequestRecord, event: Verified) -> Outcome:
    """Learn a verdict on one call of a request, or a later revision of a verdict.

    Raises:
        UnknownVerifier: the router does not declare the verifier.
        AttemptBeyondPlan: the request's plan has no such call.
        VerdictOutOfRange: the verdict is not in [0, 1].
    """
    if not 0.0 <= event.verdict <= 1.0:
        raise VerdictOutOfRange("a verdict must be between 0 and 1")
    plan = _having(record.plan or _single(record), event.attempt)
    made = plan.made[event.attempt]
    before = made.verdicts.get(event.verifier)
    if before is not None and event.revision <= before.revision:
        return DUPLICATE
    x = feedback.context_of(state, event.x) if record.x is None else record.x
    verified = state.hooks.verified
    said = verified(event, record, plan, x, state.latest) if verified else None
    if said is None:
        raise UnknownVerifier(
            f"the router declares no verifier {event.verifier!r}: add it to verifiers"
        )
    kept, taught = said
    arm = state.arms.find(plan.steps[event.attempt].model)
    if taught is not None and arm is not None:
        state.policy.learn(state, arm, record, *taught)
    verdicts = {**made.verdicts, event.verifier: kept}
    now = plan.with_attempt(event.attempt, structs.replace(made, verdicts=verdicts))
    awaited = plan.steps[event.attempt].verify if event.attempt == plan.awaits_verdict else None
    if event.verifier == awaited:
        now = structs.replace(now, overdue=False)
    _move(state, event.request_id, record, now)
    if record.label is None and now.last > plan.last:
        record.answered_by = now.steps[now.last].model
    return APPLIED if before is None else REVISED


def let_go(
    state: RouterState, records: Records, overdue: Iterable[str]
) -> Mapping[str, RequestRecord]:
    """Stop keeping money for calls that the overdue verdicts of requests would lead to; return
    their records. Bills and verdicts that come all the same are booked as before.
    """
    found = {request_id: records[request_id] for request_id in overdue}
    for request_id, record in found.items():
        assert record.plan is not None
        _move(state, request_id, record, structs.replace(record.plan, overdue=True))
        records[request_id] = record
    return found


def _move(state: RouterState, request_id: str, record: RequestRecord, plan: Plan) -> None:
    """Store a changed plan, and charge the request what it changes, without a bill."""
    before, after = _book(state, request_id, record, plan, revision=None)
    moved_usd = after - before
    if record.is_paced:
        state.pacer.settle(after, before, False)
    if state.hooks.moved:
        state.hooks.moved(record, moved_usd)


def _having(plan: Plan | None, attempt: int) -> Plan:
    """Return the plan if it has this call. Raises AttemptBeyondPlan."""
    if plan is None or not 0 <= attempt < len(plan.steps):
        raise AttemptBeyondPlan(attempt, 1 if plan is None else len(plan.steps))
    return plan


def _single(record: RequestRecord) -> Plan:
    """Return a plan for a request that has none: its one call, as far as known."""
    bill, step = record.bill, Step(record.model, record.expected_cost_usd, record.price)
    made = NOTHING
    if bill is not None:
        unanswered = not record.is_answered
        made = structs.replace(
            NOTHING,
            cost_usd=bill.cost_usd,
            revision=bill.revision,
            unanswered=unanswered,
            redirected=record.is_redirected,
        )
    return Plan((step,), (made,), record.propensity, -1 if record.label is None else 0)


def _book(
    state: RouterState, request_id: str, record: RequestRecord, plan: Plan, *, revision: int | None
) -> tuple[float, float]:
    """Store a changed plan in the record and move the books; return the dollars that the request
    was charged before, and those that it is charged now.

    Args:
        revision: revision of the bill that came; None: no bill came.
    """
    (before, awaited), bill = record.dollars, record.bill
    if record.plan is not None:
        may = plan.pending
        gone = [number for number in record.plan.pending if number not in may]
        release(state, plan, [n for n in gone if plan.made[n].cost_usd is None])
    spent = 0.0 if bill is None else bill.cost_usd
    record.call = structs.replace(record.call or PLAIN, plan=plan)
    if revision is None and bill is not None:
        revision = bill.revision
    if revision is not None:
        # A closed request stays closed, even if a verdict is revised.
        is_open = plan.is_open and not record.expired and (bill is None or bill.open)
        record.bill = Settlement(plan.spent_usd, revision, is_open)
        state.settled += bill is None
    after, still = record.dollars
    state.move(request_id, record, before_usd=spent, awaited_usd=awaited, now_awaited_usd=still)
    return before, after


def release(state: RouterState, plan: Plan, calls: Iterable[int]) -> None:
    """Note that these calls of a plan will not be made, so that they no longer count as in
    flight.
    """
    for number in calls:
        arm = state.arms.find(plan.steps[number].model)
        if arm is not None:
            arm.costs.awaited = max(arm.costs.awaited - 1, 0)
            arm.costs.regression.changed()


def _price_of(state: RouterState, called: str) -> Price | None:
    arm = state.arms.find(called)
    return None if arm is None else arm.price


def _priced(
    state: RouterState, record: RequestRecord, event: Charged, called: str, price: Price | None
) -> float:
    """Return the dollars of a bill. Raises CostOutOfRange, UnpricedModel."""
    if event.cost_usd is not None:
        return event.cost_usd
    if event.tokens is None:
        raise CostOutOfRange("a bill needs cost_usd or token counts")
    if price is None:
        raise UnpricedModel(
            "tokens of a model that is not in the portfolio have no price: report dollars"
        )
    found = price.cost_usd(input_tokens=event.tokens[0], output_tokens=event.tokens[1])
    dearer = price.input_factor(event.tokens[0])
    for one in state.capabilities:
        found -= dearer * one.discount_usd(
            record, price, called=called, tokens=event.tokens[0], cached=event.cached
        )
    return found
