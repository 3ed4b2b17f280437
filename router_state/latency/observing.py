"""Charge a target of latency at a decision, and correct the charge by bills."""

from __future__ import annotations

from msgspec import structs

from router_state.billing import Billing
from router_state.choice import Waits
from router_state.latency.timing import Timing
from router_state.record import PLAIN, RequestRecord


def commit(timing: Timing, record: RequestRecord, waits: Waits, k: int) -> None:
    """Charge the expected time of a decided request's call; k is the chosen arm. A call that the
    router did not choose owes the target nothing.
    """
    tail = timing.goal.p95_seconds is not None
    record.waits = waits.seconds, waits.units if tail else None
    most = timing.goal.most
    if most is None or not record.is_paced:
        return
    wait = waits.units[k]
    timing.debt.usd += wait - most
    timing.changed()
    record.call = structs.replace(record.call or PLAIN, wait=wait)


def billed(timing: Timing, billing: Billing) -> None:
    """Learn the time of a billed call, and replace the charged time by it.

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
    _settle(timing, record, lost + seconds, answered=not unanswered)
    if unanswered:
        record.call = structs.replace(record.call or PLAIN, lost_seconds=lost + seconds)
    elif record.is_paced:
        timing.measure(lost + seconds)


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
