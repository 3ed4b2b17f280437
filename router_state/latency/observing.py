"""Charge a target of latency at a decision, and correct the charge by bills.

The calls of a plan follow each other, so their times add up: a decision is charged what the whole
plan is expected to take.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from router_state.billing import Billing
from router_state.latency.expected_waits import Waits
from router_state.latency.timing import Timing
from router_state.plan import Plan
from router_state.record import RequestRecord

NAME = "latency"
"""Names the target in a router's declaration, and `Taken` in `Call.kept`."""


class Taken(Struct, array_like=True, gc=False, frozen=True):
    """The time that a request is charged, and that its calls took.

    Attributes:
        charged: in the unit of the target; None: nothing is charged.
        seconds: seconds of the calls without an answer, and of a plan's calls so far.
    """

    charged: float | None = None
    seconds: float = 0.0


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
    record.keep(NAME, Taken(wait))


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
    taken = record.kept_by(NAME, Taken) or Taken()
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
        _settle(timing, record, taken, taken.seconds + whole, answered=False)
        close(timing, record)
        return
    _settle(timing, record, taken, taken.seconds + seconds, answered=not unanswered)
    if not unanswered and record.is_paced:
        timing.measure(taken.seconds + seconds)


def close(timing: Timing, record: RequestRecord) -> None:
    """Replace the charged time of a plan by the time that its calls took together, once no other
    call is awaited.
    """
    taken = record.kept_by(NAME, Taken)
    if taken is None or _is_awaited(record) or taken.seconds <= 0.0:
        return
    _settle(timing, record, taken, taken.seconds, answered=True)
    if record.is_paced:
        timing.measure(taken.seconds)


def _is_awaited(record: RequestRecord) -> bool:
    # Whether its bill is open is only known once the capabilities have noted a bill.
    return not record.expired and record.plan is not None and record.plan.is_open


def _settle(
    timing: Timing, record: RequestRecord, taken: Taken, seconds: float, *, answered: bool
) -> None:
    """Replace the charged time of a request by the time that it has taken so far, and store these
    seconds unless the request is answered.
    """
    charged, most, left = taken.charged, timing.goal.most, 0.0 if answered else seconds
    if charged is not None and most is not None:
        in_units = timing.goal.taken(seconds)
        difference = in_units - charged if answered else max(in_units - charged, 0.0)
        if answered:
            timing.debt.note(difference, most)
        timing.debt.usd += difference
        timing.changed()
        charged += difference
    if (found := Taken(charged, left)) != taken:
        record.keep(NAME, found)
