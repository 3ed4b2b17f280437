"""Check that every bill and reward is booked once or accounted for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from router_state.engine import Engine
from router_state.plan import Plan
from router_state.record import RequestRecord
from router_state.router import RouterState
from schemas.costs import CostReported
from schemas.event import MalformedEvent, decode_keyed
from schemas.headers import FORWARDED
from schemas.reasons import Reason
from schemas.rewards import RewardObserved
from studies.audit.attempts_booked import differing
from studies.audit.bills_in_force import BillInForce, Booked
from studies.audit.findings import Findings, Kind
from studies.audit.incarnations import Answers, Ends, Ref, name_of
from studies.audit.labels_booked import LabelsBooked
from studies.audit.recovered_state import Evidence
from studies.audit.sums_booked import SumsCheck
from studies.audit.topic_reading import Progress
from studies.history.records import Record

E = TypeVar("E", CostReported, RewardObserved)


def _subject(event: CostReported | RewardObserved) -> str:
    return event.subject if isinstance(event, RewardObserved) else event.request_id


class FeedbackCheck:
    """Check the bills and rewards of one partition."""

    def __init__(
        self,
        evidence: Evidence,
        answers: Answers,
        findings: Findings,
        *,
        partition_of: Callable[[str], int],
        rank_of: Callable[[str], int],
    ) -> None:
        self._evidence = evidence
        self._answers = answers
        self._findings = findings
        self._partition_of = partition_of
        self._booked = Booked()
        self._labels = LabelsBooked(evidence.engines, findings, rank_of=rank_of)
        self._orphans: set[Ref] = set()
        self._unclear: dict[str, str] = dict.fromkeys(
            answers.asked_again,
            "a request that was forgotten was asked again: its bills and rewards can't be told "
            "from those before",
        )

    def run(self, read: Progress, *, gone: Collection[str], ends: Ends, complete: bool) -> None:
        """Read bills and rewards and compare them with the state.

        Args:
            gone: routers that were removed and declared again.
            ends: the known offsets at which routers were removed.
            complete: whether the logs of bills and rewards are kept from their beginning.
        """
        for record in self._evidence.contained("costs", read):
            bill = self._take("costs", record, CostReported)
            if bill is not None:
                self._fold_bill(bill)
        for record in self._evidence.contained("rewards", read):
            reward = self._take("rewards", record, RewardObserved)
            if reward is not None:
                self._fold_reward(reward)
        self._check_lost()
        sums = SumsCheck(self._booked, self._labels, self._answers, self._findings)
        for router_id, engine in self._evidence.engines.items():
            # These sums are over a router's life. If bills were deleted, or the router lived
            # before, a difference may not be a fault.
            if (why := self._unclear.get(router_id)) is not None:
                self._findings.unprovable("books", f"router {router_id}", why)
            elif complete and router_id not in gone:
                self._check_records(router_id, engine)
                sums.check(router_id, engine, ends)
            else:
                self._findings.unprovable(
                    "books",
                    f"router {router_id}",
                    "bills or rewards are no longer on the log, or it was gone",
                )

    def _take(self, topic: str, record: Record, schema: type[E]) -> E | None:
        """Return an event that counts here; None if it is refused, waits, or belongs to another
        partition.
        """
        self._findings.checked[topic] += 1
        refused = self._evidence.check_letter(topic, record, self._findings)
        try:
            event: E = decode_keyed(schema, key=record.key, value=record.value)
        except MalformedEvent as error:
            if not refused:
                where = f"{topic}-{self._evidence.number} offset {record.offset}"
                self._findings.violation(
                    Kind.LETTER_MISSING,
                    where,
                    f"a malformed event ({error.reason.value}) without one",
                )
            return None
        place = (topic, event.router_id, _subject(event))
        if self._partition_of(event.router_id) != self._evidence.number:
            if not refused:
                self._answers.strays[place] += 1
            return None
        if FORWARDED in record.headers:
            self._answers.forwarded[place] += 1
        parked = self._evidence.waiting[topic].get(record.offset)
        if refused:
            self._findings.checked[f"{topic}_refused"] += 1
            if parked is not None and not parked.refused:
                return None  # refused after the state was read
            letter = self._evidence.letters[topic][record.offset]
            # An orphaned bill is refused, yet booked, because its dollars were spent.
            if isinstance(event, CostReported) and letter.reason == Reason.ORPHAN_COST.value:
                ref = (event.router_id, event.request_id)
                self._booked.unmatched[event.router_id] += event.cost_usd or 0.0
                decided_at = self._answers.billed_to.get(ref)
                # One that came after the decision is of a forgotten request.
                if decided_at is None or record.offset <= decided_at:
                    self._orphans.add(ref)
                    self._booked.bills.pop(ref, None)  # what waited with it is a duplicate
            return None
        return event if parked is None else None

    def _fold_bill(self, bill: CostReported) -> None:
        ref, attempt = (bill.router_id, bill.request_id), bill.attempt or 0
        later = self._booked.later.get(ref, {})
        found = later.get(attempt) if attempt else self._booked.bills.get(ref)
        if found is None or bill.revision > found.revision:
            tokens = (
                None
                if bill.input_tokens is None or bill.output_tokens is None
                else (bill.input_tokens, bill.output_tokens)
            )
            now = BillInForce(
                bill.revision, bill.cost_usd, tokens, bill.cached_input_tokens, bill.model
            )
            if attempt:
                self._booked.later[ref] = {**later, attempt: now}
            else:
                self._booked.bills[ref] = now

    def _fold_reward(self, event: RewardObserved) -> None:
        if event.verifier is None:
            self._labels.take(event)
        else:
            ref = (event.router_id, event.request_id or "")
            self._booked.verdicts[ref].add((event.attempt or 0, event.verifier))

    def _check_lost(self) -> None:
        """Check that every event without a dead letter belongs to a decision, or was superseded by
        a bill that waits or was orphaned.
        """
        waiting = {
            (p.router_id, p.request_id)
            for p in self._evidence.state.parking
            if p.request_id is not None
        }
        superseded = self._orphans | waiting
        places: tuple[tuple[Kind, Iterable[Ref], set[Ref]], ...] = (
            (Kind.BILL, self._booked.bills, superseded),
            (Kind.BILL, self._booked.later, superseded),
            (Kind.REWARD, self._labels.of_requests, set()),
            (Kind.REWARD, self._booked.verdicts, set()),
        )
        for kind, refs, left_out in places:
            for ref in refs:
                known = (
                    ref in self._answers.decided
                    or ref in self._answers.earlier
                    or ref in left_out
                    or self._remembered(ref)
                )
                if not known and ref[0] in self._evidence.engines:
                    self._findings.violation(
                        kind, name_of(ref), "it has no decision, no dead letter, and does not wait"
                    )
        for ref in superseded - self._answers.decided.keys():
            self._booked.bills.pop(ref, None)
        for ref in self._orphans & self._answers.decided.keys() & self._booked.bills.keys():
            self._judge_orphan(ref)

    def _judge_orphan(self, ref: Ref) -> None:
        """Tell whether a bill's request had another bill that was orphaned before the decision."""
        engine = self._evidence.engines.get(ref[0])
        record = None if engine is None else engine.records.get(ref[1])
        if record is None:
            self._unclear[ref[0]] = (
                "of a request that is forgotten one bill was orphaned before its decision: it "
                "can't be told whether another one was booked"
            )
        elif record.bill is None:
            del self._booked.bills[ref]

    def _remembered(self, ref: Ref) -> bool:
        engine = self._evidence.engines.get(ref[0])
        return engine is not None and ref[1] in engine.records

    def _check_records(self, router_id: str, engine: Engine) -> None:
        for request_id, record in engine.records.items():
            ref = (router_id, request_id)
            if record.plan is not None:
                self._check_plan(ref, record, record.plan, engine.state)
            else:
                self._check_bill(ref, record, engine.state)
            self._labels.check(ref, record, engine)

    def _check_bill(self, ref: Ref, record: RequestRecord, state: RouterState) -> None:
        bill = self._booked.bills.get(ref)
        found = None if record.bill is None else (record.bill.revision, record.bill.cost_usd)
        usd = None if bill is None else bill.usd(record, state)
        expected = None if bill is None else (bill.revision, usd)
        # Without a price only the revision can be compared; `SumsCheck` reports that.
        if bill is not None and usd is None and record.bill is not None:
            expected = (bill.revision, record.bill.cost_usd)
        if found != expected:
            self._findings.violation(
                Kind.BILL,
                name_of(ref),
                f"(revision, dollars) {found} in the state, {expected} in costs",
            )

    def _check_plan(self, ref: Ref, record: RequestRecord, plan: Plan, state: RouterState) -> None:
        bills = dict(self._booked.later.get(ref, {}))
        if (first := self._booked.bills.get(ref)) is not None:
            bills[0] = first
        differences = differing(
            plan,
            {number: bill.revision for number, bill in bills.items()},
            lambda number: bills[number].cost_usd,
            self._booked.verdicts.get(ref, set()),
        )
        for difference in differences:
            self._findings.violation(Kind.BILL, name_of(ref), difference)
        if record.bill is not None and record.bill.cost_usd != plan.spent_usd:
            self._findings.violation(
                Kind.BILL,
                name_of(ref),
                f"{record.bill.cost_usd!r} dollars are booked, its calls and verdicts cost "
                f"{plan.spent_usd!r}",
            )
