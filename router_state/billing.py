"""One bill on its way into a router, handed from step to step."""

from __future__ import annotations

from msgspec import Struct, structs

from router_state.config import Vector
from router_state.events import Charged
from router_state.record import PLAIN, RequestRecord


class Billing(Struct, gc=False, eq=False):
    """A bill with its request, and what the steps have found out about them.

    Attributes:
        event: the bill as it came; record: the record of its request.
        x: the request's context, shape (d,), or None where it is not known.
        called: the model that the bill is from.
        cost_usd: dollars of the bill; charged_usd: dollars charged to the request so far.
        first: whether this is the request's first bill; answered: whether an answer was billed
            before; unanswered: whether the billed call was not answered.
        seq: number of the router's last decision; now: time of the router's last event, seconds
            since the epoch.
        input_tokens: number of tokens at list price that cost as much as the bill's input; None: as
            many as the input has.
        redirected: whether another model than the called one answered.
        reward: a reward in [0, 1] that the called model learns from this bill; None: none.
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
    redirected: bool = False

    @property
    def difference_usd(self) -> float:
        """The dollars of this bill minus the dollars that the request was charged before."""
        return self.cost_usd - self.charged_usd

    def keep_attempt(self) -> None:
        """Store in the record whether a bill of the answer is still awaited, and the cost of the
        attempts so far.
        """
        record = self.record
        if self.unanswered:
            call = structs.replace(record.call or PLAIN, unanswered=True, lost_usd=self.cost_usd)
        elif record.call is None or not record.call.unanswered:
            return
        else:
            call = structs.replace(record.call, unanswered=False, lost_usd=0.0)
        record.call = None if call == PLAIN else call
