"""Define the metrics of a worker, in one registry per worker.

Topics are labelled by their short names (`requests`), whatever the prefix: rules and dashboards fit
every service. All counters exist at 0 from the start, so that their first increase is seen.
"""

import time
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from agents.group import Group
from agents.ports import Encode, Prompt
from agents.refusal_kinds import EncoderUnavailable
from agents.table.keys import OF
from router_state.changes import Outcome
from router_state.config import Vector
from schemas.reasons import Reason
from schemas.routes import RouteReason
from schemas.topic_roles import SOURCES
from streams.process_metrics import new_registry
from streams.service.event_metrics import EventMetrics

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of a histogram's buckets, seconds: Prometheus's Go client has them, but two."""
GAPS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 15.0, 30.0)
"""Upper bounds of the buckets of heartbeat gaps, seconds; the last one is the longest session that
can be set."""
OUTCOMES = (
    *(f"decided_{reason}" for reason in RouteReason),
    *(f"{kind}_{outcome.value}" for kind in ("bill", "reward") for outcome in Outcome),
    *("reward_withdrawn", "parked", "expired", "forgotten", "forgotten_early"),
    *("declaration_repeated", "internal_error", "set_aside"),
    *(f"{what}_unreadable" for what in OF.values()),
)
"""Labels of `pb_outcomes_total`, all there from the start: a rate over a series that was just born
is blind."""


class ConditionMetrics:
    """The metrics of a worker's condition: its event loop, its partitions and recoveries, its
    membership, and how far it is from the ends of its topics.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.stalls = Histogram(
            "pb_loop_stall_seconds",
            "How much later than asked for the event loop came back",
            buckets=SECONDS,
            registry=registry,
        )
        self.ready = Gauge(
            "pb_ready",
            "1 while the worker owns recovered partitions and makes progress",
            registry=registry,
        )
        self.partitions = Gauge("pb_partitions", "Partitions owned", registry=registry)
        self.topic_partitions = Gauge(
            "pb_topic_partitions", "Partitions that each topic has", registry=registry
        )
        self.recoveries = Counter("pb_recoveries_total", "Recoveries completed", registry=registry)
        self.recovery_seconds = Gauge(
            "pb_recovery_seconds", "Duration of the last recovery", registry=registry
        )
        self.heartbeat_gaps = Histogram(
            "pb_heartbeat_gap_seconds",
            "Time between two heartbeats that the group confirmed",
            buckets=GAPS,
            registry=registry,
        )
        self.unacked = Gauge(
            "pb_unacked_events", "Events fetched and not finished", registry=registry
        )
        self.committed = Gauge(
            "pb_committed_offset",
            "Committed source offset",
            ["topic", "partition"],
            registry=registry,
        )
        self.end = Gauge(
            "pb_end_offset",
            "End of the source partition",
            ["topic", "partition"],
            registry=registry,
        )


class Metrics(ConditionMetrics):
    """The metrics of one worker, all with the prefix `pb_`: of its condition, and of events.

    Args:
        sources: short names of the topics that are read.
    """

    def __init__(self, sources: Iterable[str] = SOURCES) -> None:
        registry = self.registry = new_registry()
        super().__init__(registry)
        topics = tuple(sources)
        events = EventMetrics(topics, OUTCOMES)
        registry.register(events)
        self.count, self.finished = events.count, events.finished
        self.dead_letters = Counter(
            "pb_dead_letters_total", "Events refused", ["topic", "reason"], registry=registry
        )
        self.retries = Counter(
            "pb_retries_total", "Transient failures tried again", ["what"], registry=registry
        )
        self.encodings = Histogram(
            "pb_encode_seconds",
            "Time to encode the prompts of a batch",
            buckets=SECONDS,
            registry=registry,
        )
        self.prompts = Counter("pb_encoded_prompts_total", "Prompts encoded", registry=registry)
        self.commits = Histogram(
            "pb_commit_seconds",
            "Time until a group's changes were durable",
            buckets=SECONDS,
            registry=registry,
        )
        self.records = Counter(
            "pb_changelog_records_total", "Changes made durable", registry=registry
        )
        self.bytes = Counter(
            "pb_changelog_bytes_total", "Size of the changes made durable", registry=registry
        )
        self._begin_at_zero(topics)

    def group(self, group: Group) -> None:
        """Measure a group of source events that is finished."""
        passed, now = dict(group.passed), time.time()
        if "publish" in passed:
            self.commits.observe((passed["publish"] - passed["commit"]) / 1e9)
            self.records.inc(len(group.changes))
            changes = group.changes
            self.bytes.inc(sum(map(len, changes)) + sum(map(len, filter(None, changes.values()))))
        for batch in group.batches:
            self.finished(batch.name, batch.messages, now=now)

    def measured(self, encode: Encode) -> Encode:
        """Return an encoder that is measured."""

        async def encode_measured(prompts: list[Prompt]) -> Sequence[Vector | EncoderUnavailable]:
            with self.encodings.time():
                contexts = await encode(prompts)
            self.prompts.inc(len(prompts))
            return contexts

        return encode_measured

    def _begin_at_zero(self, topics: tuple[str, ...]) -> None:
        self.retries.labels(what="redis")
        for topic in topics:
            for reason in Reason:
                self.dead_letters.labels(topic=topic, reason=reason.value)
