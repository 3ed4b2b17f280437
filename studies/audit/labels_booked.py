"""Check that the label in a request's record is the label that follows from the topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from router_state.engine import Engine
from router_state.record import RequestRecord
from router_state.sessions.credit import WHOLE
from router_state.sessions.ranks import BELOW_OWN
from router_state.sources.measured_sources import MeasuredSources
from schemas.rewards import RewardObserved
from studies.audit.findings import Findings, Kind
from studies.audit.incarnations import Ref, name_of
from studies.history.request_labels import LabelInForce, RequestLabels, SourceLabel, sources_of


class LabelsBooked:
    """The labels that the state of one partition must hold, according to the topic.

    Attributes:
        of_requests: the labels of each request.

    Args:
        engines: the routers of the partition, by id.
    """

    def __init__(
        self, engines: Mapping[str, Engine], findings: Findings, *, rank_of: Callable[[str], int]
    ) -> None:
        self.of_requests: dict[Ref, RequestLabels] = {}
        self._of_sessions: defaultdict[str, set[LabelInForce]] = defaultdict(set)
        # Sessions of which one label was withdrawn: their requests keep all labels from then on.
        self._withdrawn: set[tuple[str, str | None]] = set()
        self._ranked_otherwise: set[str] = set()
        self._engines, self._findings, self._rank_of = engines, findings, rank_of

    def take(self, event: RewardObserved) -> None:
        """Take a label of a request or of a session."""
        assert event.source is not None  # as its schema says
        rank = self._rank_of(event.source)
        if event.request_id is not None:
            ref = (event.router_id, event.request_id)
            labels = self.of_requests.setdefault(ref, RequestLabels())
            label = SourceLabel(event.reward, rank, event.revision)
            labels.take(event.source, label, sources_of(self._engines.get(event.router_id)))
        elif event.reward is None:
            self._withdrawn.add((event.router_id, event.session_id))
        else:
            self._of_sessions[event.router_id].add(
                LabelInForce(event.reward, WHOLE + event.source, rank - BELOW_OWN, event.revision)
            )

    def check(self, ref: Ref, record: RequestRecord, engine: Engine) -> None:
        """Compare the label that a record holds with the topic."""
        sources, labels, known = sources_of(engine), self.of_requests.get(ref), record.label
        label = None if labels is None else labels.in_force(sources)
        learned = (
            None
            if known is None
            else LabelInForce(known.reward, known.source, known.rank, known.revision)
        )
        # The recomputation determines the sessions of a request.
        credited = label is None and learned in self._of_sessions[ref[0]]
        if learned == label or credited or self._kept_by_session(ref[0], record):
            return
        # Labels that came before sources were declared, or until then, ranked otherwise.
        kept = record.call is not None and MeasuredSources.name in record.call.kept
        by_sources = sources.gold is not None or kept
        if by_sources and record.config_offset != engine.state.config.offset:
            self._ranked_otherwise.add(ref[0])
            self._findings.unprovable(
                "rewards", name_of(ref), "another declaration was in force at its decision"
            )
        else:
            self._findings.violation(
                Kind.REWARD, name_of(ref), f"{learned} in the state, {label} in rewards"
            )

    def check_count(self, router_id: str, engine: Engine, decided: Iterable[Ref]) -> None:
        """Compare the state's number of labelled requests with the topic. To be called once `check`
        has seen all of the router's records."""
        found, expected = engine.state.rewards_applied, self._count(router_id, engine, decided)
        where = f"router {router_id}"
        if found == expected:
            return
        if router_id in self._ranked_otherwise:
            self._findings.unprovable(
                "rewards", where, "another declaration was in force when labels came"
            )
        else:
            self._findings.violation(
                Kind.COUNTER,
                where,
                f"rewards_applied is {found} in the state, {expected} by the topics",
            )

    def _count(self, router_id: str, engine: Engine, decided: Iterable[Ref]) -> int:
        """Return how many requests have a label, according to the topic."""
        sources, records = sources_of(engine), engine.records
        kept = {
            request_id: record.label is not None
            for request_id, record in records.items()
            if self._kept_by_session(router_id, record)
        }
        by_topic = (
            ref in self.of_requests and self.of_requests[ref].in_force(sources) is not None
            for ref in decided
            if ref[1] not in kept
        )
        labels = sum(by_topic) + sum(kept.values())
        if self._of_sessions[router_id]:
            labels += sum(
                record.label is not None and record.label.source.startswith(WHOLE)
                for request_id, record in records.items()
                if request_id not in kept
            )
            # A forgotten request may have had a session's label.
            if engine.state.forgotten.requests:
                labels = max(engine.state.rewards_applied, labels)
        return labels

    def _kept_by_session(self, router_id: str, record: RequestRecord) -> bool:
        """Tell whether a label of the request's session was withdrawn: only the recomputation knows
        when, before or after its other labels.
        """
        return record.call is not None and (router_id, record.call.session_id) in self._withdrawn
