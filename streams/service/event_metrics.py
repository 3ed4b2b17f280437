"""Count events in plain numbers, which are exported at each scrape: a series of the client library
takes a lock for every event.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ground.messages import Record, trace_of_message

WAITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of seconds from a record's time to its end; waits of seconds to a
minute come from a restart or a backlog.
"""
BOUNDS = (*map(str, WAITS), "+Inf")
"""Labels of the buckets."""


@dataclass(slots=True)
class Finished:
    """The finished events of one topic.

    Attributes:
        counts: events by bucket; exemplars: the last slow event of each bucket that had a trace.
        seconds: sum of the seconds that all events took.
    """

    counts: list[int] = field(default_factory=lambda: [0] * len(BOUNDS))
    exemplars: list[Exemplar | None] = field(default_factory=lambda: [None] * len(BOUNDS))
    seconds: float = 0.0

    def buckets(self) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
        """Return of each bucket its label, the events up to its bound, and its exemplar if it has
        one.
        """
        found = zip(BOUNDS, accumulate(self.counts), self.exemplars, strict=True)
        return [
            (bound, count) if exemplar is None else (bound, count, exemplar)
            for bound, count, exemplar in found
        ]


class EventMetrics(Collector):
    """The finished events of each topic, and what became of events.

    Args:
        topics: short names of the source topics; outcomes: labels that are there from the start.
    """

    def __init__(self, topics: Iterable[str], outcomes: Iterable[str]) -> None:
        self._finished = {topic: Finished() for topic in topics}
        self._outcomes = dict.fromkeys(outcomes, 0)

    def count(self, what: str, amount: int = 1) -> None:
        """Count an outcome of the agents."""
        if amount:
            self._outcomes[what] = self._outcomes.get(what, 0) + amount

    def finished(self, topic: str, messages: Sequence[Record], *, now: float) -> None:
        """Count events of a topic that are finished; the trace of the slowest event is the exemplar
        of its bucket.
        """
        found = self._finished[topic]
        waited = [max(now - m.timestamp / 1000, 0.0) if m.timestamp else 0.0 for m in messages]
        for seconds in waited:
            found.counts[bisect_left(WAITS, seconds)] += 1
        found.seconds += sum(waited)
        longest = max(waited)
        if trace_id := trace_id_of(messages[waited.index(longest)]):
            exemplar = Exemplar({"trace_id": trace_id}, longest, time.time())
            found.exemplars[bisect_left(WAITS, longest)] = exemplar

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        events = CounterMetricFamily("pb_events", "Source events finished", labels=["topic"])
        seconds = HistogramMetricFamily(
            "pb_event_seconds",
            "From an event's record to its end: state durable, answer delivered",
            labels=["topic"],
        )
        outcomes = CounterMetricFamily(
            "pb_outcomes", "What became of events, by outcome", labels=["outcome"]
        )
        for topic, found in self._finished.items():
            events.add_metric([topic], sum(found.counts))
            seconds.add_metric([topic], found.buckets(), found.seconds)
        for outcome, count in self._outcomes.items():
            outcomes.add_metric([outcome], count)
        yield from (events, seconds, outcomes)


def trace_id_of(message: Record) -> str | None:
    """Return the id of the trace that a message belongs to, if it names one."""
    parent = dict(trace_of_message(message) if message.headers else ()).get("traceparent")
    return None if parent is None else parent.decode().split("-")[1]
