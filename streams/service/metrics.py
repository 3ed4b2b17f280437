"""Name and count what an operator watches; one registry a worker, nothing global."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: The last one is the longest session that can be set; a gap of a session is a false alarm.
GAPS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 15.0, 30.0)


class Metrics:
    """The metrics of one worker, all with the prefix `pb_`."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.events = Counter("pb_events_total", "Source events processed", ["topic"], registry=registry)
        self.dead_letters = Counter("pb_dead_letters_total", "Events refused", ["topic", "reason"], registry=registry)
        self.outcomes = Counter("pb_outcomes_total", "What became of events, by outcome", ["outcome"], registry=registry)
        self.retries = Counter("pb_retries_total", "Transient failures tried again", ["what"], registry=registry)
        self.commits = Histogram(
            "pb_commit_seconds", "Time until a batch's changes were durable", buckets=SECONDS, registry=registry
        )
        self.records = Counter("pb_changelog_records_total", "Changes made durable", registry=registry)
        self.bytes = Counter("pb_changelog_bytes_total", "Size of the changes made durable", registry=registry)
        self.ready = Gauge("pb_ready", "1 while the worker owns recovered partitions and makes progress", registry=registry)
        self.partitions = Gauge("pb_partitions", "Partitions owned", registry=registry)
        self.recoveries = Counter("pb_recoveries_total", "Recoveries completed", registry=registry)
        self.recovery_seconds = Gauge("pb_recovery_seconds", "Duration of the last recovery", registry=registry)
        self.heartbeat_gaps = Histogram(
            "pb_heartbeat_gap_seconds", "Time between two heartbeats that the group confirmed", buckets=GAPS, registry=registry
        )
        self.unacked = Gauge("pb_unacked_events", "Events fetched and not finished", registry=registry)
        self.committed = Gauge("pb_committed_offset", "Committed source offset", ["topic", "partition"], registry=registry)
        self.end = Gauge("pb_end_offset", "End of the source partition", ["topic", "partition"], registry=registry)

    def count(self, what: str, amount: int = 1) -> None:
        """Count an outcome of the agents."""
        if amount:
            self.outcomes.labels(outcome=what).inc(amount)
