"""Check that a router's sums and counters are those of its bills and labels."""

from __future__ import annotations

import math

from router_state.engine import Engine
from studies.audit.bills_in_force import Booked
from studies.audit.findings import Findings, Kind
from studies.audit.incarnations import Answers, Ends, Ref
from studies.audit.labels_booked import LabelsBooked
from studies.audit.periods import check_periods

TOLERANCE = 1e-9
"""Largest difference in dollars, relative or absolute: sums of bills depend on their order."""


class SumsCheck:
    """Compare the sums of routers with the topics, once all bills and labels are read."""

    def __init__(
        self, booked: Booked, labels: LabelsBooked, answers: Answers, findings: Findings
    ) -> None:
        self._booked, self._labels = booked, labels
        self._answers, self._findings = answers, findings

    def check(self, router_id: str, engine: Engine, ends: Ends) -> None:
        """Compare the sums and counters of one router."""
        state, where = engine.state, f"router {router_id}"
        decided = [ref for ref in self._answers.decided if ref[0] == router_id]
        billed = self._booked.bills.keys() | self._booked.later.keys()
        usd = [self._usd(ref, engine) for ref in decided if ref in billed]
        self._check_spend(where, state.spend_usd, usd)
        self._check_unmatched(router_id, engine, ends)
        awaited = [r.awaited_usd for r in engine.records.values() if r.is_awaited]
        self._same(Kind.COMMITTED, where, "committed_usd", state.committed_usd, math.fsum(awaited))
        check_periods(router_id, engine, self._findings)
        self._labels.check_count(router_id, engine, decided)
        for name, found, expected in (
            ("settled", state.settled, len(usd)),
            ("in_flight", state.in_flight, len(awaited)),
        ):
            if found != expected:
                self._findings.violation(
                    Kind.COUNTER, where, f"{name} is {found} in the state, {expected} by the topics"
                )

    def _usd(self, ref: Ref, engine: Engine) -> float | None:
        """Return the dollars of all bills and verdicts of a request; None if that needs a price
        that is forgotten."""
        record, bill = engine.records.get(ref[1]), self._booked.bills.get(ref)
        if record is not None and record.plan is not None:
            return record.plan.spent_usd
        if self._booked.later.get(ref) or self._booked.verdicts.get(ref):
            return None
        return None if bill is None else bill.usd(record, engine.state)

    def _check_spend(self, where: str, spend_usd: float, usd: list[float | None]) -> None:
        """Compare the dollars spent with the bills; None is a bill whose price is not known."""
        # Prices are forgotten together with their request.
        if None in usd:
            self._findings.unprovable(
                "spend", where, "bills in tokens whose price is not remembered any more"
            )
        else:
            self._same(
                Kind.SPEND,
                where,
                "spend_usd",
                spend_usd,
                # The exact sum is rounded once, so that a difference comes from the state's
                # rounding alone.
                math.fsum(amount for amount in usd if amount is not None),
            )

    def _check_unmatched(self, router_id: str, engine: Engine, ends: Ends) -> None:
        """Compare the dollars of bills without a decision with the topics."""
        state, where = engine.state, f"router {router_id}"
        unmatched = self._booked.unmatched[router_id]
        # A router that was removed before any decision leaves only orphans.
        if state.unmatched_cost_usd < unmatched - TOLERANCE and ends.perhaps_between(
            -1, state.config.offset
        ):
            self._findings.unprovable(
                "unmatched",
                where,
                f"unmatched_cost_usd is {state.unmatched_cost_usd!r} in the state, {unmatched!r} "
                "by the topics: some may be of a router of this name that was gone before, as "
                "pb.routers is compacted",
            )
        else:
            self._same(
                Kind.UNMATCHED, where, "unmatched_cost_usd", state.unmatched_cost_usd, unmatched
            )

    def _same(self, kind: Kind, where: str, name: str, found: float, expected: float) -> None:
        if not math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            self._findings.violation(
                kind, where, f"{name} is {found!r} in the state, {expected!r} by the topics"
            )
