"""Apply a bill or a reward to its request: the books, the record, and what its model learns."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from router_state.changes import APPLIED, DUPLICATE, REVISED
from router_state.costs.ratio import list_price_of
from router_state.errors import ContextLost, NonFiniteInput, RewardOutOfRange, UnknownRequest
from router_state.kernel.arm import Arm
from router_state.kernel.books import Books, checked_cost
from router_state.kernel.context import check
from router_state.kernel.elementary import exp
from router_state.kernel.learning import NOT_LEARNED, Learner
from router_state.kernel.record import Label, RequestRecord, Settlement
from router_state.kernel.words import Flag, Real, ccall, cfunc

if TYPE_CHECKING:
    from types import ModuleType

    from router_state.changes import Outcome
    from router_state.config import Vector
    from router_state.events import Charged, Judged
    from router_state.record import Records


@cfunc
def remembered(records: Records, request_id: str) -> RequestRecord:
    """Return a request's record. Raises UnknownRequest."""
    record: RequestRecord | None = records.get(request_id)
    if record is None:
        raise UnknownRequest(f"no decision for request {request_id!r}")
    return record


def settle(state: Books, records: Records, event: Charged, others: ModuleType) -> Outcome:
    """Book a request's bill, or a later revision of it, in place of what was charged so far; see
    `Engine.settle`.

    Args:
        others: `router_state.feedback`, which is called where a router, a request or a bill has
            more than a plain one.
    """
    record: RequestRecord = remembered(records, event.request_id)
    before = record.bill
    said = event.cost_usd
    cost_usd: Real = checked_cost(others.priced(state, record, event) if said is None else said)
    if before is not None and event.revision <= before.revision:
        return DUPLICATE
    x = record.x
    if x is None and event.x is not None:
        x = event.x
        check(x, state.arms.d)
    status = event.status
    called = event.model or record.answered_by or record.model
    answered: Flag = record.answered()
    charged_usd: Real = record.expected_cost_usd if before is None else before.cost_usd
    state.pacer.settle(cost_usd, charged_usd, before is None)
    if state.buckets or state.ledger is not None:
        others.hold(state, record, cost_usd - charged_usd)
    state.bill(event.request_id, record, cost_usd)
    observed: Flag = record.call is not None or status is not None
    observed = observed or state.arms.timing is not None or bool(state.availability.models)
    if observed:
        others.observe(state, record, event, called=called, answered=answered, x=x)
    # A revision is of the same call: it moves the books, and teaches nothing that the first bill of
    # an answer has not taught.
    if not answered:
        if status is None or status not in others.UNANSWERED:
            learn_bill_of(state, record, event, cost_usd, called, x, others)
        if observed:
            others.note(record, status=status, cost_usd=cost_usd)
    record.bill = Settlement(cost_usd, event.revision)
    # Candidates are published and no longer needed; with 64 models they are most of a record.
    record.candidates = record.waits = None
    records[event.request_id] = record
    return APPLIED if before is None else REVISED


@cfunc
def learn_bill_of(
    state: Books,
    record: RequestRecord,
    event: Charged,
    cost_usd: Real,
    called: str,
    x: Vector | None,
    others: ModuleType,
) -> None:
    """Let the billed model learn the bill, and keep the model and its price in the record."""
    price, arms = record.price, state.arms
    if record.label is None:
        record.answered_by = None if called == record.model else called
    if called != record.model:
        used = others.price_of(state, record, called)
        if used is None:
            return
        price = record.price = used
    arm: Arm | None = arms.find(called)
    # The model was dropped, or changed between free and priced, so that the ratio has another
    # meaning.
    if arm is None or (arm.price is not price and (price.per_1k == 0.0) != (arm.per_1k == 0.0)):
        return
    costs = arm.costs
    list_price: Real = costs.list_price if arm.price is price else list_price_of(price)
    known: Real = 0.0
    if record.call is not None:
        cost_usd = max(cost_usd - record.call.lost_usd, 0.0)
    if arms.tokens.in_use:
        counted: Real = others.counted(state, record, event, called=called)
        known = counted * price.input_price_per_m / 1e6 / list_price
    learner: Learner = state.policy.learner
    learner.bill(state, costs, cost_usd / list_price, known, x)


@ccall
def checked_reward(reward: Real) -> Real:
    """Return a reward.

    Raises:
        NonFiniteInput, RewardOutOfRange: not a reward.
    """
    if not 0.0 <= reward <= 1.0:
        if not isfinite(reward):
            raise NonFiniteInput("a reward is not finite")
        raise RewardOutOfRange("a reward must be between 0 and 1")
    return reward


def learn(state: Books, records: Records, event: Judged) -> Outcome:
    """Learn a request's reward, or revise the one that was learned; see `Engine.learn`."""
    record: RequestRecord = remembered(records, event.request_id)
    reward: Real = checked_reward(event.reward)
    label = record.label
    source, rank, revision = event.source, event.rank, event.revision
    # News are rewards of higher rank, and later revisions from the same source.
    if (
        label is not None
        and rank <= label.rank
        and (source != label.source or revision <= label.revision)
    ):
        return DUPLICATE
    x = record.x
    if x is None and event.x is not None:
        x = event.x
        check(x, state.arms.d)
    if x is None:
        raise ContextLost(f"the context of request {event.request_id!r} is in no store")
    if label is None and event.model is not None:
        # A caller that did not wait called another model, and the reward is of that one.
        record.answered_by = None if event.model == record.model else event.model
    arm: Arm | None = state.arms.find(record.answered_by or record.model)
    forgotten: Real = NOT_LEARNED
    if label is None:
        if arm is not None:
            learner: Learner = state.policy.learner
            forgotten = learner.learn(state, arm, record, x, reward)
        state.rewards_applied += 1
    elif arm is not None:
        one = arm.rewards
        # Only the remaining weight of the first reward can be revised.
        one.revise(
            x, difference=reward - label.reward, discount=exp(label.forgotten - one.forgotten)
        )
        forgotten = label.forgotten
    record.label = Label(reward, source, rank, revision, forgotten)
    records[event.request_id] = record
    return APPLIED if label is None else REVISED
