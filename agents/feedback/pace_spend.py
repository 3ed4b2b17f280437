"""Book the real costs of requests, and so pace spend."""

from __future__ import annotations

from agents.feedback.book_feedback import Feedback
from schemas.quick import Bill


class PaceSpend(Feedback[Bill]):
    """Settle the commitment of each request with its bill.

    Reads `pb.costs` (key router_id). Writes the router's state and the request's record to
    `router_states`; `pb.lambda` follows. The same or a lower revision again changes nothing, a
    higher one books the difference. Dead letters: everything of `CostReported`,
    `cost_out_of_range`, and `orphan_cost` after a wait, with the money in `unmatched_cost_usd`.
    """

    __slots__ = ()
    name, kind = "costs", Bill
