"""The bills and verdicts that the state must hold, according to the topics."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from router_state.feedback import tokens_usd
from router_state.record import RequestRecord
from router_state.router import RouterState
from studies.audit.attempts_booked import CallOf
from studies.audit.incarnations import Ref


class BillInForce(NamedTuple):
    """The bill that counts: the first one of the highest revision."""

    revision: int
    cost_usd: float | None
    tokens: tuple[int, int] | None
    cached: int | None
    model: str | None

    def usd(self, record: RequestRecord | None, state: RouterState) -> float | None:
        """Return the bill's dollars; None if a bill in tokens needs a price that is forgotten."""
        if self.cost_usd is not None:
            return self.cost_usd
        if record is None or self.tokens is None:
            return None
        called = self.model or record.called
        # A record keeps the prices of its decision, those of cached input only for the decided
        # model.
        remembered = called == record.model or (self.cached is None and record.is_answered)
        # Other prices are those of the declaration in force, which
        # may have changed since, as the model may that a bill does not name.
        if not remembered and (
            record.config_offset != state.config.offset
            or (self.model is None and record.answered_by is not None)
        ):
            return None
        return tokens_usd(state, record, self.tokens, called=called, cached=self.cached)


@dataclass(slots=True)
class Booked:
    """The bills and verdicts that the state must hold, according to the topics.

    Attributes:
        later: bills of further calls of a request, by the numbers of the calls.
        verdicts: verdicts on a request's calls.
        unmatched: Σ of orphaned bills, by router.
    """

    bills: dict[Ref, BillInForce] = field(default_factory=dict)
    later: dict[Ref, dict[int, BillInForce]] = field(default_factory=dict)
    verdicts: defaultdict[Ref, set[CallOf]] = field(default_factory=lambda: defaultdict(set))
    unmatched: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
