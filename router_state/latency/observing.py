"""Charge a target of latency at a decision, and correct the charge by bills.

The calls of a plan follow each other, so their times add up: a decision is charged what the whole
plan is expected to take.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from router_state.billing import Billing
from router_state.latency.expected_waits import Waits
from router_state.latency.timing import Timing
from router_state.plan import Plan
from router_state.record import PLAIN, RequestRecord


def commit(timing: Timing, record: RequestRecord, waits: Waits, k: int) -> None:
    """Charge the expected time of a decided request's call; k is the chosen arm. A call that the
    router did not choose owes the target nothing.
    """
    most = timing.goal.most
    if most is None or not record.is_paced:
        return
    plan = record.plan
    wait = waits.units[k] if plan is None else _of_plan(timing, record, plan, waits)
    timing.debt.usd += wait - most
    timing.changed()
    record.call = structs.replace(record.call or PLAIN, wait=wait)


def _of_plan(timing: Timing, record: RequestRecord, plan: Plan, waits: Waits) -> float:
    """Return the expected time of a plan, in the unit of the target. A call that begins late has so
    much less time until it counts as slow.
    """
    goal, x, spent, found = timing.goal, record.x, 0.0, 0.0
    row = {name: k for k, name in enumerate(timing.speeds)}
    followed = [*(step.probability for step in plan.steps[1:]), 0.0]
    for step, next_one in zip(plan.steps, followed, strict=True):
        k = row[step.model]
        if goal.p95_seconds is None or x is None:
            found += step.probability * waits.units[k]
            continue
        left = goal.p95_seconds - spent
        slow = waits.units[k] if not spent else 1.0
        if spent and left > 0.0:
            slow = float(timing.waits(x.astype(np.float32)[None, :], 1, left)[0][0, k])
        found += (step.probability - next_one) * slow
        spent += waits.seconds[k]
    return found


def billed(timing: Timing, billing: Billing) -> None:
    """Learn the time of a billed call, and replace the charged time by the billed one.

    A call that timed out counts with at least its time so far. This time is added to the next call
    of the same request.
    """
    event, record, unanswered = billing.event, billing.record, billing.unanswered
    lost = 0.0 if record.call is None else record.call.lost_seconds
    seconds = event.latency if unanswered or timing.goal.of == "answer" else event.first_token
    if seconds is None:
        if not unanswered:
            timing.miss(now=billing.now)
        return
    if event.status != "rate_limited":
        timing.learn(
            billing.called,
            seconds,
            billing.x,
            seq=billing.seq,
            now=billing.now,
            at_least=unanswered,
        )
    if record.plan is not None and len(record.plan.steps) > 1:
        # An answer that does not pass is waited for to its end.
        whole = seconds if event.latency is None or not _is_awaited(record) else event.latency
        record.call = structs.replace(record.call or PLAIN, lost_seconds=lost + whole)
        _settle(timing, record, lost + whole, answered=False)
        close(timing, record)
        return
    _settle(timing, record, lost + seconds, answered=not unanswered)
    if unanswered:
        record.call = structs.replace(record.call or PLAIN, lost_seconds=lost + seconds)
    elif record.is_paced:
        timing.measure(lost + seconds)


def close(timing: Timing, record: RequestRecord) -> None:
    """Replace the charged time of a plan by the time that its calls took together, once no other
    call is awaited.
    """
    call = record.call
    if call is None or _is_awaited(record) or call.lost_seconds <= 0.0:
        return
    _settle(timing, record, call.lost_seconds, answered=True)
    if record.is_paced:
        timing.measure(call.lost_seconds)
    assert record.call is not None
    record.call = structs.replace(record.call, lost_seconds=0.0)


def _is_awaited(record: RequestRecord) -> bool:
    # Whether its bill is open is only known once the capabilities have noted a bill.
    return not record.expired and record.plan is not None and record.plan.is_open


def _settle(timing: Timing, record: RequestRecord, seconds: float, *, answered: bool) -> None:
    """Replace the charged time of a request by the time that it has taken so far."""
    call, most = record.call, timing.goal.most
    if call is None or call.wait is None or most is None:
        return
    taken = timing.goal.taken(seconds)
    difference = taken - call.wait if answered else max(taken - call.wait, 0.0)
    if answered:
        timing.debt.note(difference, most)
    timing.debt.usd += difference
    timing.changed()
    record.call = structs.replace(call, wait=call.wait + difference)
