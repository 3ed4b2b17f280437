"""Apply a bill or a reward to its request: move the books, change the record, teach the model."""

from __future__ import annotations

from msgspec import structs

from router_state import registered
from router_state.billing import Billing
from router_state.changes import APPLIED, DUPLICATE, REVISED, Outcome
from router_state.config import Price, Vector
from router_state.errors import (
    AttemptBeyondPlan,
    ContextLost,
    CostOutOfRange,
    UnknownRequest,
    UnpricedModel,
)
from router_state.events import UNANSWERED, Charged, Judged
from router_state.kernel import Arm, check, exp_of, list_price_of
from router_state.plan import Taught
from router_state.policies.learning import NOT_LEARNED
from router_state.record import Label, Records, RequestRecord, Settlement, Weighed
from router_state.router import RouterState
from router_state.totals import checked_cost, checked_reward

Changed = dict[str, RequestRecord | None]
"""Requests that changed, see `Changes.records`."""


def settle(state: RouterState, records: Records, event: Charged) -> Outcome:
    """Book the bill of a request; a later revision replaces what was charged so far.

    Raises:
        UnknownRequest: no decision carries this request_id.
        NonFiniteInput, CostOutOfRange: not a cost. Nothing has changed.
        UnpricedModel: tokens of a model that is not in the portfolio. Nothing has changed.
    """
    record = remembered(records, event.request_id)
    before, said = record.bill, event.cost_usd
    cost_usd = checked_cost(_priced(state, record, event) if said is None else said)
    if before is not None and event.revision <= before.revision:
        return DUPLICATE
    first, unanswered = before is None, event.status in UNANSWERED
    billing = Billing(
        event,
        record,
        context_of(state, record, event.x),
        event.model or record.called,
        cost_usd,
        record.expected_cost_usd if before is None else before.cost_usd,
        first,
        not first and record.is_answered,
        unanswered,
        state.seq,
        state.latest,
    )
    if record.is_paced:
        state.pacer.settle(cost_usd, billing.charged_usd, first)
    state.bill(event.request_id, record, cost_usd)
    named = event.answered_by is not None
    if not state.hooks.complete and (unanswered or named or record.call is not None):
        registered.begin(state)
    for billed in state.hooks.billed:
        billed(billing)
    if billing.reward is not None:
        learn_failure(state, billing, billing.reward)
    # A revision bills the same call again: it moves the books and teaches nothing, unless no bill
    # of an answer has come yet.
    if billing.redirected:
        _disown(state, billing)
    if not billing.answered:
        if not (unanswered or billing.redirected):
            _learn_bill(state, billing)
        if unanswered or record.call is not None:
            billing.keep_attempt()
    record.bill = Settlement(cost_usd, event.revision)
    # The candidates were published with the decision. With 64 models they are most of a record, so
    # they are dropped.
    record.candidates = None
    if record.waits is not None:
        record.waits = None
    records[event.request_id] = record
    return APPLIED if first else REVISED


def remembered(records: Records, request_id: str) -> RequestRecord:
    """Return a request's record. Raises UnknownRequest."""
    record = records.get(request_id)
    if record is None:
        raise UnknownRequest(f"no decision for request {request_id!r}")
    return record


def context_of(state: RouterState, record: RequestRecord, given: Vector | None) -> Vector | None:
    """Return a request's context from its record, or else the given one once it is checked."""
    if record.x is not None:
        return record.x
    if given is not None:
        check(given, state.arms.d)
    return given


def _learn_bill(state: RouterState, billing: Billing) -> None:
    """Let the billed model learn the bill, and store the model and its price in the record."""
    record, called, price = billing.record, billing.called, billing.record.price
    if record.label is None and called != record.called:
        record.answered_by = None if called == record.model else called
    if called != record.model:
        used = price_of(state, record, called)
        if used is None:
            return
        price = record.price = used
    learn_cost(state, billing, price)


def learn_cost(state: RouterState, billing: Billing, price: Price) -> None:
    """Let the billed model learn the bill of an answer at the given price."""
    record, arms, cost_usd = billing.record, state.arms, billing.cost_usd
    arm = arms.find(billing.called)
    # The model was dropped, or changed between free and priced, so that the ratio has another
    # meaning.
    if arm is None or (arm.price is not price and (price.per_1k == 0.0) != (arm.per_1k == 0.0)):
        return
    costs = arm.costs
    list_price = costs.list_price if arm.price is price else list_price_of(price)
    known = 0.0
    if record.call is not None:
        cost_usd = max(cost_usd - record.call.lost_usd, 0.0)
    if price.above:
        # What a long input cost more is known, and nothing to learn.
        said = billing.event.tokens
        length = record.input_tokens if said is None else said[0]
        cost_usd = cost_usd if length is None else price.listed_usd(cost_usd, length)
    if arms.tokens.in_use:
        counted = billing.input_tokens
        counted = arms.tokens.of(record.input_tokens) if counted is None else counted
        known = counted * price.input_price_per_m / 1e6 / list_price
    state.policy.bill(state, costs, cost_usd / list_price, known, billing.x)


def tokens_usd(
    state: RouterState,
    record: RequestRecord,
    tokens: tuple[int, int],
    *,
    called: str,
    cached: int | None,
) -> float | None:
    """Return the dollars of a request's bill in tokens; None if they have no price.

    Args:
        tokens: numbers of input and of output tokens.
        called: the model that was billed.
        cached: number of input tokens billed as cached; None: not known.
    """
    price = price_of(state, record, called)
    if price is None:
        return None
    usd = price.cost_usd(input_tokens=tokens[0], output_tokens=tokens[1])
    if not state.hooks.complete and record.call is not None:
        registered.begin(state)
    dearer = price.input_factor(tokens[0])
    for one in state.capabilities:
        off = one.discount_usd(record, price, called=called, tokens=tokens[0], cached=cached)
        usd -= dearer * off
    return usd


def price_of(state: RouterState, record: RequestRecord, called: str) -> Price | None:
    """Return the price of a bill's tokens: the chosen model's at the decision, or the present
    price of another model that was called; None if that model is not in the portfolio.

    Once the answer was billed, the price of that bill stays.
    """
    if called == record.model or record.is_answered:
        return record.price
    arm = state.arms.find(called)
    return None if arm is None else arm.price


def _priced(state: RouterState, record: RequestRecord, event: Charged) -> float:
    """Return the dollars of a bill in tokens. Raises CostOutOfRange, UnpricedModel."""
    if event.tokens is None:
        raise CostOutOfRange("a bill needs cost_usd or token counts")
    called = event.model or record.called
    cost_usd = tokens_usd(state, record, event.tokens, called=called, cached=event.cached)
    if cost_usd is None:
        raise UnpricedModel(
            "tokens of a model that is not in the portfolio have no price: report dollars"
        )
    return cost_usd


def learn_failure(state: RouterState, billing: Billing, reward: float) -> None:
    """Let the called model learn this reward from a failed call."""
    arm = state.arms.find(billing.called)
    if arm is not None and billing.x is not None:
        state.policy.learn(state, arm, billing.record, billing.x, reward)


def learn(state: RouterState, records: Records, event: Judged) -> Outcome:
    """Learn a request's reward. A reward of higher rank, or of higher revision from the same
    source, replaces an earlier one; one that is withdrawn is undone.

    Raises:
        UnknownRequest: no decision carries this request_id.
        AttemptBeyondPlan: it is of an attempt that was not planned.
        ContextLost: neither the record nor the caller has the context.
    """
    record = remembered(records, event.request_id)
    attempt = _attempt(record, event)
    keeps = record.call is not None and record.call.kept
    if (event.reward is None or keeps) and not state.hooks.complete:
        registered.begin(state)
    weighed = _weighed(state, record, event)
    if not weighed.news:
        return DUPLICATE
    outcome = REVISED
    if weighed.label != record.label:
        outcome = _put_in_force(state, record, event, weighed.label, attempt)
    for taken in state.hooks.taken:
        taken(record, event, weighed, state.latest)
    records[event.request_id] = record
    return outcome


def _weighed(state: RouterState, record: RequestRecord, event: Judged) -> Weighed:
    """Return what follows from a reward: as a capability says, else by its rank."""
    for hook in state.hooks.weighed:
        if (found := hook(record, event)) is not None:
            return found
    label, reward = record.label, event.reward
    source, rank, revision = event.source, event.rank, event.revision
    # Only rewards of higher rank, and later revisions from the same source, change anything.
    is_known = label is not None and (
        rank <= label.rank and (source != label.source or revision <= label.revision)
    )
    if is_known or reward is None:
        return Weighed(label, news=False)
    return Weighed(Label(reward, source, rank, revision, NOT_LEARNED))


def _put_in_force(
    state: RouterState, record: RequestRecord, event: Judged, label: Label | None, attempt: int
) -> Outcome:
    """Let the model that was called learn another label in place of the one before; None: none.
    Raises ContextLost."""
    before = record.label
    x = context_of(state, record, event.x)
    if x is None:
        raise ContextLost(f"the context of request {event.request_id!r} is in no store")
    if before is None:
        _keep_called(record, event, attempt)
    arm = state.arms.find(record.called)
    if label is not None:
        label.forgotten = NOT_LEARNED
    if label is None:
        assert before is not None
        _withdraw(record, arm, x, before)
        state.rewards_applied -= 1
    elif before is None:
        taught: Taught | None = Taught(x, label.reward)
        for judged in state.hooks.judged:
            taught = judged(record, x, label.reward)
        # The label is of an answer by a model that nobody called.
        if arm is not None and taught is not None and not record.is_redirected:
            label.forgotten = state.policy.learn(state, arm, record, *taught)
        state.rewards_applied += 1
    elif arm is not None:
        # Only the remaining weight of the first reward can be revised.
        difference = label.reward - before.reward
        if record.plan is not None:
            difference *= record.plan.revised
        arm.rewards.revise(x, difference=difference, discount=_left(arm, before))
        label.forgotten = before.forgotten
    record.label = label
    return APPLIED if before is None else REVISED


def _keep_called(record: RequestRecord, event: Judged, attempt: int) -> None:
    """Keep in the record which model a request's first reward is of."""
    if event.model is not None:
        # A caller that did not wait may have called another model: the reward is that model's.
        record.answered_by = None if event.model == record.model else event.model
    if record.call is not None and record.call.plan is not None:
        plan = structs.replace(record.call.plan, labelled=attempt)
        record.call = structs.replace(record.call, plan=plan)
        if event.model is None:
            name = plan.steps[attempt].model
            record.answered_by = None if name == record.model else name


def _withdraw(record: RequestRecord, arm: Arm | None, x: Vector, label: Label) -> None:
    """Let a model forget a label that was withdrawn."""
    plan, one = record.plan, None if arm is None else arm.rewards
    if one is not None and arm is not None and (plan is None or plan.revised == 1.0):
        one.withdraw(x, value=label.reward, discount=_left(arm, label))
    elif one is not None and arm is not None and plan is not None:
        # Together with verdicts a label taught another value, of another weight: it gets the value
        # that is expected, and so moves no expectation.
        difference = plan.revised * (one.predict(x) - label.reward)
        one.revise(x, difference=difference, discount=_left(arm, label))
    if plan is not None and record.call is not None:
        plan = structs.replace(plan, labelled=-1)
        record.call = structs.replace(record.call, plan=plan)


def _disown(state: RouterState, billing: Billing) -> None:
    """Let the called model forget a label that came before the bill which says that another model
    answered."""
    record, label = billing.record, billing.record.label
    arm = state.arms.find(record.called)
    if label is None or arm is None or billing.x is None or label.forgotten == NOT_LEARNED:
        return
    weight = 1.0 if record.plan is None else record.plan.revised
    if weight == 1.0:
        arm.rewards.withdraw(billing.x, value=label.reward, discount=_left(arm, label))
        label.forgotten = NOT_LEARNED


def _left(arm: Arm, label: Label) -> float:
    """Return what is left of a label that an arm has learned."""
    return exp_of(label.forgotten - arm.rewards.forgotten)


def _attempt(record: RequestRecord, event: Judged) -> int:
    """Return the number of the rewarded call. Raises AttemptBeyondPlan."""
    plan = record.plan
    if event.attempt is None:
        # One that names a model of the plan is of that call.
        called = [] if plan is None else [step.model for step in plan.steps]
        return called.index(event.model) if event.model in called else plan.last if plan else 0
    if not 0 <= event.attempt < (1 if plan is None else len(plan.steps)):
        raise AttemptBeyondPlan(f"nothing was planned as attempt {event.attempt}")
    return event.attempt


def judge(state: RouterState, records: Records, event: Judged) -> tuple[Outcome, Changed]:
    """Learn the reward of a request, or of all requests among which a capability shares it. Return
    the outcome and the records that changed. Raises as `learn` and `Capability.shared`.
    """
    if event.reward is not None:
        checked_reward(event.reward)
    for shared in state.hooks.shared:
        if (found := shared(event, records)) is not None:
            return _learn_shared(state, records, *found)
    outcome = learn(state, records, event)
    new = outcome is not DUPLICATE
    return outcome, {event.request_id: records[event.request_id]} if new else {}


def _learn_shared(
    state: RouterState, records: Records, requests: dict[str, RequestRecord], parts: list[Judged]
) -> tuple[Outcome, Changed]:
    # The record that was found is used again: every look-up in a table unpacks a record anew.
    outcomes = {one.request_id: learn(state, requests, one) for one in parts}
    changed = {name: requests[name] for name, one in outcomes.items() if one is not DUPLICATE}
    records.update(changed)
    ordered = (APPLIED, REVISED, DUPLICATE)
    return min(outcomes.values(), key=ordered.index), {**changed}
