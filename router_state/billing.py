"""One bill on its way into a router, handed from step to step."""

from __future__ import annotations

from msgspec import structs

from router_state.config import Vector
from router_state.events import UNANSWERED, Charged
from router_state.record import PLAIN, RequestRecord


class Billing:
    """The knowledge of a bill and its request.

    Attributes:
        event: the bill as it came; record: its request's.
        cost_usd: its dollars; charged_usd: what was charged so far; difference_usd: the first less
            the second.
        input_tokens: tokens at list price to which its input amounts; None: to as many as it has.
        first: whether it is the request's first; answered: whether an answer was billed before;
            unanswered: whether it is of a call that was not answered.
        called: the model that it is of.
        x: the request's context, shape (d,), or None where it is not known.
        seq: the router's last decision; now: when something last happened, seconds since the epoch.
        reward: what the called model learns of its call, as if a reward had come; None: nothing.
    """

    __slots__ = (
        "answered",
        "called",
        "charged_usd",
        "cost_usd",
        "difference_usd",
        "event",
        "first",
        "input_tokens",
        "now",
        "record",
        "reward",
        "seq",
        "unanswered",
        "x",
    )
    now: float
    reward: float | None
    seq: int
    unanswered: bool
    x: Vector | None

    def __init__(self, event: Charged, record: RequestRecord, cost_usd: float) -> None:
        before = record.bill
        self.event, self.record, self.cost_usd = event, record, cost_usd
        self.first, self.answered = before is None, record.is_answered
        self.charged_usd = record.expected_cost_usd if before is None else before.cost_usd
        self.difference_usd = cost_usd - self.charged_usd
        self.called = event.model or record.called
        self.unanswered = event.status in UNANSWERED
        self.reward: float | None = None
        self.input_tokens: float | None = None

    def keep_attempt(self) -> None:
        """Keep in the record whether its answer is still to be billed, and the cost of its attempts
        so far."""
        record = self.record
        if self.unanswered:
            call = structs.replace(record.call or PLAIN, unanswered=True, lost_usd=self.cost_usd)
        elif record.call is None or not record.call.unanswered:
            return
        else:
            call = structs.replace(record.call, unanswered=False, lost_usd=0.0)
        record.call = None if call == PLAIN else call
