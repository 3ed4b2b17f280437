"""Learn from bills how calls ended: answered, failed or limited."""

from __future__ import annotations

from msgspec import structs

from router_state.availability import FAILED, UNANSWERED
from router_state.config import Vector
from router_state.events import Charged
from router_state.record import Call, RequestRecord
from router_state.state.router import RouterState

PLAIN = Call()
"""A call about which nothing has to be kept."""


def observe(
    state: RouterState,
    record: RequestRecord,
    event: Charged,
    *,
    called: str,
    x: Vector | None,
) -> None:
    """Learn whether a model answers. A failure counts as a reward only if the declaration names its
    value.

    Args:
        called: the model that the bill is of.
        x: the context, shape (d,), or None where it is not known.
    """
    state.availability.observe(
        called,
        event.status,
        decided=record.seq,
        seq=state.seq,
        now=state.latest,
        nth=record.call.nth if record.call is not None and called == record.model else 0,
        retry_after=event.retry_after,
    )
    arm = state.arms.find(called)
    if arm is None or event.status not in UNANSWERED:
        return
    # A bill has come, so its cost is no longer at risk.
    arm.costs.awaited = 0
    reward = state.config.error_reward
    if reward is not None and event.status in FAILED and record.bill is None and x is not None:
        state.policy.learn(state, arm, record, x, reward)


def note(record: RequestRecord, *, status: str | None, cost_usd: float) -> None:
    """Note whether the answer of a request is still to be billed, and the cost of its attempts so
    far."""
    if status in UNANSWERED:
        call = structs.replace(record.call or PLAIN, unanswered=True, lost_usd=cost_usd)
    elif record.call is None or not record.call.unanswered:
        return
    else:
        call = structs.replace(record.call, unanswered=False, lost_usd=0.0)
    record.call = None if call == PLAIN else call
