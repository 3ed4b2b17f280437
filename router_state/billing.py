"""One bill on its way into a router, handed from step to step."""

from __future__ import annotations

from msgspec import Struct, structs

from router_state.config import Vector
from router_state.events import Charged
from router_state.record import PLAIN, RequestRecord


class Billing(Struct, gc=False, eq=False):
    """The knowledge of a bill and its request.

    Attributes:
        event: the bill as it came; record: its request's.
        x: the request's context, shape (d,), or None where it is not known.
        called: the model that it is of.
        cost_usd: its dollars; charged_usd: what was charged so far.
        first: whether it is the request's first; answered: whether an answer was billed before;
            unanswered: whether it is of a call that was not answered.
        seq: the router's last decision; now: when something last happened, seconds since the epoch.
        input_tokens: tokens at list price to which its input amounts; None: to as many as it has.
        reward: what the called model learns of its call, as if a reward had come; None: nothing.
    """

    event: Charged
    record: RequestRecord
    x: Vector | None
    called: str
    cost_usd: float
    charged_usd: float
    first: bool
    answered: bool
    unanswered: bool
    seq: int
    now: float
    input_tokens: float | None = None
    reward: float | None = None

    @property
    def difference_usd(self) -> float:
        """Dollars beyond what was charged so far."""
        return self.cost_usd - self.charged_usd

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
