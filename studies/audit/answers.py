"""Check that each request has one decision or one dead letter, and that seq has no gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from router_state.engine import Engine
from router_state.record import RequestRecord
from schemas.event import MalformedEvent, decode, decode_keyed
from schemas.headers import FORWARDED
from schemas.requests import RequestSubmitted
from schemas.routes import RouteDecided
from studies.audit.explained import explain
from studies.audit.findings import Findings, Kind
from studies.audit.incarnations import (
    Answers,
    Ends,
    Incarnation,
    Ref,
    answer_checksum,
    name_of,
    record_checksum,
)
from studies.audit.recovered_state import Evidence
from studies.audit.topic_reading import Progress
from studies.history.records import Record

NO_RECORD = (
    "and the record of pb.routers which says that the router was gone is no longer there, as the "
    "topic is compacted"
)
"""Reason why an audit cannot prove that a router began anew."""


class AnswerCheck:
    """Check the answers of one partition."""

    def __init__(
        self,
        evidence: Evidence,
        findings: Findings,
        *,
        ends: Ends,
        partition_of: Callable[[str], int],
    ) -> None:
        self._evidence = evidence
        self._findings = findings
        self._ends = ends
        self._partition_of = partition_of
        self._asked: Counter[Ref] = Counter()
        self._answered: Counter[Ref] = Counter()
        self._later: dict[Ref, str] = {}
        self._asked_later: set[Ref] = set()
        self.answers = Answers()

    def run(self, read: Progress, *, begins_at: int) -> Answers:
        """Read requests and routes; `begins_at` is the offset where the log of requests begins."""
        watermark = self._evidence.watermarks.get("requests", -1)
        for record in read("requests", self._evidence.number):
            # Every request that the state contains must have its answer; later requests may have
            # one by now.
            if record.offset <= watermark:
                self._ask(record)
            else:
                self._ask_later(record)
        for record in read("routes", self._evidence.number):
            self._answer(record)
        self._compare(complete=begins_at == 0)
        for router_id, incarnations in self.answers.incarnations.items():
            self._check_seq(router_id, incarnations, complete=begins_at == 0)
        return self.answers

    def _ask(self, record: Record) -> None:
        self._findings.checked["requests"] += 1
        evidence, where = self._evidence, f"requests-{self._evidence.number} offset {record.offset}"
        refused = evidence.check_letter("requests", record, self._findings)
        try:
            event = decode_keyed(RequestSubmitted, key=record.key, value=record.value)
        except MalformedEvent as error:
            if not refused:
                self._findings.violation(
                    Kind.LETTER_MISSING,
                    where,
                    f"a malformed request ({error.reason.value}) without one",
                )
            return
        place = ("requests", event.router_id, event.request_id)
        # A producer with another partitioner put it here; it is forwarded, and answered on its own
        # partition.
        if self._partition_of(event.router_id) != evidence.number:
            if not refused:
                self.answers.strays[place] += 1
            return
        if FORWARDED in record.headers:
            self.answers.forwarded[place] += 1
        if not refused and record.offset not in evidence.waiting["requests"]:
            self._asked[event.router_id, event.request_id] += 1
        elif refused:
            self._findings.checked["requests_refused"] += 1
        else:
            self._asked_later.add((event.router_id, event.request_id))

    def _ask_later(self, record: Record) -> None:
        """Note a request after the state's position: it may have been decided since."""
        try:
            event = decode_keyed(RequestSubmitted, key=record.key, value=record.value)
        except MalformedEvent:
            return
        self._asked_later.add((event.router_id, event.request_id))

    def _answer(self, record: Record) -> None:
        self._findings.checked["routes"] += 1
        where = f"routes-{self._evidence.number} offset {record.offset}"
        try:
            route = decode(RouteDecided, record.value)
        except MalformedEvent as error:
            self._findings.violation(Kind.MALFORMED, where, str(error))
            return
        incarnation = self._incarnation_of(route, where)
        engine = self._evidence.engines.get(route.router_id)
        if engine is not None and self._is_beyond(route, engine):
            self._later[route.router_id, route.request_id] = where
            # decided after the state was read, unless its request was decided before or never sent
            return
        ref = (route.router_id, route.request_id)
        known, checksum = incarnation.decisions.get(route.seq), answer_checksum(route)
        if known is None and not route.repeat:
            incarnation.decisions[route.seq] = (route.request_id, checksum)
            self._decide(route, incarnation, where)
        elif known is not None and known != (route.request_id, checksum):
            self._findings.violation(
                Kind.CONTRADICTION, where, f"seq {route.seq} was answered otherwise before"
            )
        elif known is None:
            self._findings.unprovable(
                "repeat", where, "the answer that it repeats is no longer on the log"
            )
        if route.repeat:
            self._answered[ref] += 1

    def _incarnation_of(self, route: RouteDecided, where: str) -> Incarnation:
        """Return a route's incarnation; it begins if the router was removed before the route."""
        # Routes are read in order, so a seq that restarts shows that the router was removed in
        # between.
        incarnations = self.answers.incarnations.setdefault(route.router_id, [Incarnation()])
        latest = incarnations[-1]
        if route.repeat or not latest.decisions or not self._starts_anew(route, latest, where):
            return latest
        incarnations.append(Incarnation())
        # A router that was declared again counts seq from 1, and may get known request ids.
        for ref in [ref for ref in self.answers.decided if ref[0] == route.router_id]:
            del self.answers.decided[ref]
            self.answers.earlier.add(ref)
        return incarnations[-1]

    def _decide(self, route: RouteDecided, incarnation: Incarnation, where: str) -> None:
        """Note a decision that is no repeat, and check its terms."""
        ref = (route.router_id, route.request_id)
        self._findings.checked["decisions"] += 1
        incarnation.config_offset = max(incarnation.config_offset, route.config_offset)
        if route.applied is not None and route.applied.since is not None:
            incarnation.note(route.applied.since)
        before = self.answers.decided.get(ref)
        if before is not None and incarnation.has_forgotten(before):
            self.answers.asked_again.add(route.router_id)
        elif before is not None:
            self._findings.violation(
                Kind.ANSWERED_TWICE, where, f"{route.request_id}: seq {before} and seq {route.seq}"
            )
        self.answers.decided[ref] = route.seq
        if route.applied is not None:
            self.answers.billed_to[ref] = route.applied.costs
        self._answered[ref] += 1
        explain(route, where, self._findings)

    def _is_beyond(self, route: RouteDecided, engine: Engine) -> bool:
        """Tell whether a decision is newer than the router's state, in the same incarnation."""
        before, here = route.config_offset, engine.state.config.offset
        return route.seq > engine.state.seq and not (
            self._ends.between(route.router_id, before, here)
            or (before < here and self._ends.perhaps_between(before, here))
        )

    def _starts_anew(self, route: RouteDecided, incarnation: Incarnation, where: str) -> bool:
        """Tell whether the router was removed between its incarnation so far and a decision."""
        before, now = incarnation.config_offset, route.config_offset
        if self._ends.between(route.router_id, before, now):
            return True
        # A worker counts from 1 again only for a router that was removed.
        if route.seq > 1 or not before < now or not self._ends.perhaps_between(before, now):
            return False
        self._findings.unprovable("incarnation", where, f"seq begins anew, {NO_RECORD}")
        return True

    def _present(self, router_id: str, engine: Engine) -> Incarnation:
        """Return the incarnation of a router's state; an empty one has decided nothing."""
        incarnation = self.answers.incarnations.get(router_id, [Incarnation()])[-1]
        before, here = incarnation.config_offset, engine.state.config.offset
        if not incarnation.decisions or not before < here:
            return incarnation
        if self._ends.between(router_id, before, here):
            return Incarnation()
        if engine.state.seq < max(incarnation.decisions) and self._ends.perhaps_between(
            before, here
        ):
            self._findings.unprovable(
                "incarnation", f"router {router_id}", f"its state has decided less, {NO_RECORD}"
            )
            return Incarnation()
        return incarnation

    def _compare(self, *, complete: bool) -> None:
        for ref, asked in self._asked.items():
            answered = self._answered.get(ref, 0)
            if not answered:
                self._findings.violation(
                    Kind.UNANSWERED, name_of(ref), "neither a decision nor a dead letter"
                )
            # An id that is sent twice gets one decision and one repeat.
            elif answered < asked:
                self._findings.violation(
                    Kind.UNANSWERED, name_of(ref), f"asked {asked} times, answered {answered} times"
                )
        for ref in self._later & self.answers.decided.keys():
            self._findings.violation(
                Kind.ANSWERED_TWICE,
                name_of(ref),
                "one more decision, which the state does not know",
            )
        for ref, where in self._later.items():
            if ref not in self._asked_later and ref not in self.answers.decided:
                self._judge_unasked(ref, where, complete=complete)
        for ref in (
            # If retention deleted requests, a decision without one proves nothing.
            self._answered.keys() - self._asked.keys() - self._asked_later if complete else ()
        ):
            self._findings.violation(
                Kind.UNASKED,
                name_of(ref),
                "a decision, and every request of this id was refused, or there is none",
            )
        for router_id, engine in self._evidence.engines.items():
            present = self._present(router_id, engine)
            if not present.decisions and self.answers.incarnations.get(router_id):
                # The state holds nothing of an earlier incarnation.
                self.answers.incarnations[router_id].append(present)
            for request_id, record in engine.records.items():
                self._check_record((router_id, request_id), record, present)

    def _judge_unasked(self, ref: Ref, where: str, *, complete: bool) -> None:
        """Report a decision without a request: every request is on its topic before its answer."""
        if complete:
            self._findings.violation(
                Kind.UNASKED,
                where,
                f"{name_of(ref)}: a decision beyond the state, and no request of this id",
            )
        else:
            self._findings.unprovable("later", where, f"{name_of(ref)}: its request may be deleted")

    def _check_record(self, ref: Ref, record: RequestRecord, incarnation: Incarnation) -> None:
        """Compare the state's record of a request with its decision."""
        found = incarnation.decisions.get(record.seq)
        if found is None:
            self._findings.violation(
                Kind.NOT_PUBLISHED,
                name_of(ref),
                f"seq {record.seq} is in the state and not in routes",
            )
        elif found != (ref[1], record_checksum(ref, record)):
            self._findings.violation(
                Kind.NOT_IN_STATE, name_of(ref), f"the state says otherwise about seq {record.seq}"
            )

    def _check_seq(self, router_id: str, each: list[Incarnation], *, complete: bool) -> None:
        for incarnation in each:
            if not incarnation.decisions:
                continue
            first, last = min(incarnation.decisions), max(incarnation.decisions)
            missing = last - first + 1 - len(incarnation.decisions)
            # An incarnation must begin at 1 only if no decision can have been deleted.
            if missing or (first > 1 and complete):
                self._findings.violation(
                    Kind.SEQ_GAP, f"router {router_id}", f"{missing} missing from {first} to {last}"
                )
        engine = self._evidence.engines.get(router_id)
        last = max(each[-1].decisions, default=0)
        if engine is not None and engine.state.seq != last:
            self._findings.violation(
                Kind.SEQ_GAP,
                f"router {router_id}",
                f"the state is at {engine.state.seq}, routes at {last}",
            )
