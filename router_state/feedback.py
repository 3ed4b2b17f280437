"""Apply a bill or a reward to its request: move the books, change the record, teach the model."""

from __future__ import annotations

from msgspec import structs

from router_state import registered
from router_state.billing import Billing
from router_state.changes import APPLIED, DUPLICATE, REVISED, Changed, Outcome
from router_state.config import Price, Vector
from router_state.errors import (
    AttemptBeyondPlan,
    ContextLost,
    CostOutOfRange,
    UnpricedModel,
)
from router_state.events import UNANSWERED, Charged, Judged
from router_state.kernel import Arm, check, exp_of, list_price_of
from router_state.record import (
    NOT_LEARNED,
    Label,
    Records,
    RequestRecord,
    Settlement,
    unknown,
)
from router_state.router import RouterState
from router_state.totals import checked_cost, refuse_reward


def settle(state: RouterState, record: RequestRecord, event: Charged) -> Outcome:
    """Book the bill of a request; a later revision replaces what was charged so far.

    Raises:
        NonFiniteInput, CostOutOfRange: not a cost. Nothing has changed.
        UnpricedModel: tokens of a model that is not in the portfolio. Nothing has changed.
    """
    before, stated, call = record.bill, event.cost_usd, record.call
    cost_usd = checked_cost(_priced(state, record, event) if stated is None else stated)
    first, charged_usd, answered = before is None, record.expected_cost_usd, False
    if before is not None:
        if event.revision <= before.revision:
            return DUPLICATE
        charged_usd, answered = before.cost_usd, record.is_answered
    unanswered = event.status is not None and event.status in UNANSWERED
    billing = Billing(
        event,
        record,
        context_of(state, event.x) if record.x is None else record.x,
        event.model or record.answered_by or record.model,
        cost_usd,
        charged_usd,
        first,
        answered,
        unanswered,
        state.seq,
        state.latest,
    )
    if call is None or not call.unpaced:
        state.pacer.settle(cost_usd, charged_usd, first)
    state.bill(event.request_id, record, cost_usd)
    if not state.hooks.complete and (
        unanswered or call is not None or event.answered_by is not None
    ):
        registered.begin(state)
    if state.hooks.billed:
        state.hooks.billed(billing)
    if billing.reward is not None:
        learn_failure(state, billing, billing.reward)
    # A revision bills the same call again: it moves the books and teaches nothing, unless no bill
    # of an answer has come yet.
    if billing.redirected:
        disown(state, billing)
    if not answered:
        if not (unanswered or billing.redirected):
            _learn_bill(state, billing)
        if unanswered or record.call is not None:
            billing.keep_attempt()
    record.bill = Settlement(cost_usd, event.revision)
    # The candidates were published with the decision. With 64 models they are most of a record, so
    # they are dropped.
    record.candidates = None
    if record.noted is not None:
        record.noted = None
    return APPLIED if first else REVISED


def context_of(state: RouterState, given: Vector | None) -> Vector | None:
    """Return the context that an event brings for a request whose record has none, once it is
    checked."""
    if given is not None:
        check(given, state.arms.d)
    return given


def _learn_bill(state: RouterState, billing: Billing) -> None:
    """Let the billed model learn the bill, and store the model and its price in the record."""
    record, called = billing.record, billing.called
    price, other = record.price, None if called == record.model else called
    if record.answered_by != other and record.label is None:
        record.answered_by = other
    if other is not None:
        used = price_of(state, record, called)
        if used is None:
            return
        price = record.price = used
    lost_usd = 0.0 if record.call is None else record.call.lost_usd
    learn_cost(state, billing, price, lost_usd=lost_usd)


def learn_cost(state: RouterState, billing: Billing, price: Price, *, lost_usd: float) -> None:
    """Let the billed model learn the bill of an answer at the given price; `lost_usd` of it are
    those of tries that failed."""
    arms, known = state.arms, 0.0
    cost_usd = max(billing.cost_usd - lost_usd, 0.0)
    arm, tokens = arms.find(billing.called), arms.tokens
    if arm is None:
        return
    costs = arm.costs
    list_price = costs.list_price
    if arm.price is not price:
        # Between free and priced the ratio has another meaning.
        if (price.per_1k == 0.0) != (arm.per_1k == 0.0):
            return
        list_price = list_price_of(price)
    if price.above:
        # What a long input cost more is known, and nothing to learn.
        billed = billing.event.tokens
        length = billing.record.input_tokens if billed is None else billed[0]
        cost_usd = cost_usd if length is None else price.listed_usd(cost_usd, length)
    if tokens.in_use:
        counted = billing.input_tokens
        counted = tokens.of(billing.record.input_tokens) if counted is None else counted
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


def learn(state: RouterState, record: RequestRecord, event: Judged) -> Outcome:
    """Learn a request's reward. A reward of higher rank, or of higher revision from the same
    source, replaces an earlier one; one that is withdrawn is undone.

    Raises:
        AttemptBeyondPlan: it is of an attempt that was not planned.
        ContextLost: neither the record nor the caller has the context.
    """
    call, before = record.call, record.label
    attempt = 0 if call is None and event.attempt is None else _attempt(record, event)
    if not state.hooks.complete and (event.reward is None or (call is not None and call.kept)):
        registered.begin(state)
    hooks = state.hooks
    weighed = hooks.weighed(record, event) if hooks.weighed else None
    label, labels, news = before, None, False
    if weighed is not None:
        label, labels, news = weighed.label, weighed.labels, weighed.news
        attempt = attempt if weighed.attempt is None else weighed.attempt
    elif (reward := event.reward) is not None and (before is None or _outranks(event, before)):
        label, news = Label(reward, event.source, event.rank, event.revision), True
    if not news:
        return DUPLICATE
    outcome = REVISED
    if label != before:
        x = context_of(state, event.x) if record.x is None else record.x
        if x is None:
            raise ContextLost(f"the context of request {event.request_id!r} is in no store")
        if before is not None and label is not None and _is_of_other(record, attempt):
            # The model of that other answer learns this label, and the one before forgets its own.
            _replace(state, record, x, before, None)
            _put_in_force(state, record, x, None)
        elif before is not None:
            _replace(state, record, x, before, label)
        else:
            outcome = APPLIED
        if label is not None and (outcome is APPLIED or record.label is None):
            if event.model is not None or call is not None:
                _keep_called(record, event, attempt)
            _teach(state, record, x, label)
            state.rewards_applied += 1
        _put_in_force(state, record, x, label)
    if hooks.taken:
        hooks.taken(record, event, labels, state.latest)
    return outcome


def _put_in_force(
    state: RouterState, record: RequestRecord, x: Vector, label: Label | None
) -> None:
    """Store which label of a request is in force; None: none is."""
    before, record.label = record.label, label
    if state.hooks.learned:
        state.hooks.learned(record, x, before)


def _is_of_other(record: RequestRecord, attempt: int) -> bool:
    """Tell whether the label in force is of another call of the request's plan than this one."""
    return record.plan is not None and 0 <= record.plan.labelled != attempt


def _outranks(event: Judged, before: Label) -> bool:
    """Tell whether a reward replaces the one in force: by its rank, or by a later revision from the
    same source.
    """
    if event.rank > before.rank:
        return True
    return event.source == before.source and event.revision > before.revision


def _teach(state: RouterState, record: RequestRecord, x: Vector, label: Label) -> None:
    """Let the called model learn a request's first label."""
    # A label of an answer by a model that nobody called is learned by none.
    plan = record.plan
    redirected = record.is_redirected if plan is None else plan.made[plan.labelled].redirected
    arm = None if redirected else state.arms.find(record.called)
    worth = label.reward
    if state.hooks.worth:
        found = state.hooks.worth(record, label, False)
        if found is None:
            _set_aside(arm, label)
            return
        worth = found
    taught: tuple[Vector, float] | None = x, worth
    if state.hooks.judged:
        taught = state.hooks.judged(record, x, worth)
    if arm is not None and taught is not None:
        of, value = taught
        label.forgotten = state.policy.learn(state, arm, record, of, value)


def _set_aside(arm: Arm | None, label: Label) -> None:
    """Date a label that is not learned to now, as a later event may let it be learned after all."""
    if arm is not None:
        label.forgotten = arm.rewards.forgotten


def _replace(
    state: RouterState, record: RequestRecord, x: Vector, before: Label, label: Label | None
) -> None:
    """Let the model that was called learn another label in place of the one before; None: none."""
    arm = state.arms.find(record.called)
    held: float | None = before.reward
    worth = None if label is None else label.reward
    if state.hooks.worth:
        held = state.hooks.worth(record, before, True)
        worth = None if label is None else state.hooks.worth(record, label, False)
    if label is None:
        state.rewards_applied -= 1
    elif held is None:
        _teach(state, record, x, label)
        return
    if worth is None and held is not None:
        _withdraw(record, arm, x, before, held)
    if label is None:
        _unlabelled(record)
    elif worth is None:
        _set_aside(arm, label)
    elif arm is not None and held is not None:
        # Only the remaining weight of the first reward can be revised.
        difference = worth - held
        if record.plan is not None:
            difference *= record.plan.revised
        arm.rewards.revise(x, difference=difference, discount=_left(arm, before))
        label.forgotten = before.forgotten


def _keep_called(record: RequestRecord, event: Judged, attempt: int) -> None:
    """Keep in the record which model a request's first reward is of."""
    if event.model is not None:
        # A caller that did not wait may have called another model: the reward is that model's.
        record.answered_by = None if event.model == record.model else event.model
    if record.call is not None and record.call.plan is not None:
        plan = structs.replace(record.call.plan, labelled=attempt, revised=1.0)
        record.call = structs.replace(record.call, plan=plan)
        if event.model is None:
            name = plan.steps[attempt].model
            record.answered_by = None if name == record.model else name


def _withdraw(
    record: RequestRecord, arm: Arm | None, x: Vector, label: Label, worth: float
) -> None:
    """Let a model forget a withdrawn label, which it had learned as `worth`."""
    plan, one = record.plan, None if arm is None else arm.rewards
    if one is not None and arm is not None and (plan is None or plan.revised == 1.0):
        one.withdraw(x, value=worth, discount=_left(arm, label))
    elif one is not None and arm is not None and plan is not None:
        # Together with verdicts a label taught another value, of another weight: it gets the value
        # that is expected, and so moves no expectation.
        difference = plan.revised * (one.predict(x) - worth)
        one.revise(x, difference=difference, discount=_left(arm, label))


def _unlabelled(record: RequestRecord) -> None:
    """Note in a request's plan that no attempt has a label."""
    if record.plan is not None and record.call is not None:
        plan = structs.replace(record.plan, labelled=-1)
        record.call = structs.replace(record.call, plan=plan)


def disown(state: RouterState, billing: Billing) -> None:
    """Let the called model forget a label that came before the bill which says that another model
    answered."""
    record, label = billing.record, billing.record.label
    arm = state.arms.find(record.called)
    if label is None or arm is None or billing.x is None or label.forgotten == NOT_LEARNED:
        return
    worth: float | None = label.reward
    if state.hooks.worth:
        worth = state.hooks.worth(record, label, True)
    if worth is not None:
        _withdraw(record, arm, billing.x, label, worth)
    label.forgotten = NOT_LEARNED


def _left(arm: Arm, label: Label) -> float:
    """Return the share of a learned label that an arm has not forgotten yet."""
    return exp_of(label.forgotten - arm.rewards.forgotten)


def _attempt(record: RequestRecord, event: Judged) -> int:
    """Return the number of the rewarded call. Raises AttemptBeyondPlan."""
    plan = record.plan
    if event.attempt is None:
        if plan is None:
            return 0
        # One that names a model of the plan is of that call.
        called = [step.model for step in plan.steps]
        return called.index(event.model) if event.model in called else plan.last
    calls = 1 if plan is None else len(plan.steps)
    if not 0 <= event.attempt < calls:
        raise AttemptBeyondPlan(event.attempt, calls)
    return event.attempt


def judge(state: RouterState, records: Records, event: Judged) -> tuple[Outcome, Changed]:
    """Learn the reward of a request, or of all requests among which a capability shares it. Return
    the outcome and the records that changed.

    Raises:
        UnknownRequest: no decision carries this request_id.
        RouterStateError: as `learn` and `Capability.shared`.
    """
    request_id, reward = event.request_id, event.reward
    if reward is not None and not 0.0 <= reward <= 1.0:
        refuse_reward(reward)
    if state.hooks.shared:
        found = state.hooks.shared(event, records)
        if found is not None:
            return _learn_shared(state, records, *found)
    record = records.get(request_id) or unknown(request_id)
    outcome = learn(state, record, event)
    if outcome is not DUPLICATE:
        records[request_id] = record
    return outcome, {request_id: record}


def _learn_shared(
    state: RouterState, records: Records, requests: dict[str, RequestRecord], parts: list[Judged]
) -> tuple[Outcome, Changed]:
    # The record that was found is used again: every look-up in a table unpacks a record anew.
    outcomes = {one.request_id: learn(state, requests[one.request_id], one) for one in parts}
    changed = {name: requests[name] for name, one in outcomes.items() if one is not DUPLICATE}
    records.update(changed)
    return min(outcomes.values(), key=(APPLIED, REVISED, DUPLICATE).index), {**changed}
