"""What is counted in plain numbers reads as the client library's own series do."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.openmetrics.exposition import generate_latest

from streams.service.event_metrics import WAITS, EventMetrics

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACED = ((("traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode()),), ())


def series(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """Return every sample of a registry by its name and labels."""
    return {
        (sample.name, str(sorted(sample.labels.items()))): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


def library(batches: list[list[int]], outcomes: list[str]) -> CollectorRegistry:
    """Return the library's series after the same events."""
    registry = CollectorRegistry()
    events = Counter("pb_events_total", "Events", ["topic"], registry=registry)
    seconds = Histogram("pb_event_seconds", "Waits", ["topic"], buckets=WAITS, registry=registry)
    counts = Counter("pb_outcomes_total", "Outcomes", ["outcome"], registry=registry)
    counts.labels("a"), events.labels("requests"), seconds.labels("requests")
    for batch in batches:
        events.labels("requests").inc(len(batch))
        for sent in batch:
            seconds.labels("requests").observe(max(100.0 - sent / 1000, 0.0) if sent else 0.0)
    for outcome in outcomes:
        counts.labels(outcome).inc()
    return registry


@given(
    st.lists(st.lists(st.integers(0, 101_000), min_size=1, max_size=5), max_size=5),
    st.lists(st.sampled_from("abc"), max_size=5),
)
def test_series_are_those_of_the_library(batches: list[list[int]], outcomes: list[str]) -> None:
    registry = CollectorRegistry()
    metrics = EventMetrics(["requests"], ["a"])
    registry.register(metrics)
    for batch in batches:
        messages = [SimpleNamespace(timestamp=sent, headers=()) for sent in batch]
        metrics.finished("requests", messages, now=100.0)
    for outcome in outcomes:
        metrics.count(outcome)
        metrics.count("never", 0)
    found, wanted = series(registry), series(library(batches, outcomes))
    assert found.keys() == wanted.keys()
    assert all(abs(found[name] - wanted[name]) < 1e-6 for name in found)


def test_the_slowest_event_of_a_batch_leaves_its_trace() -> None:
    registry = CollectorRegistry()
    metrics = EventMetrics(["requests"], [])
    registry.register(metrics)
    sent = zip((99_000, 99_900), TRACED, strict=True)
    messages = [SimpleNamespace(timestamp=at, headers=headers) for at, headers in sent]
    metrics.finished("requests", messages, now=100.0)
    page: str = generate_latest(registry).decode()
    lines = [line for line in page.splitlines() if "trace_id" in line]
    assert len(lines) == 1
    assert 'le="1.0"' in lines[0] and '2.0 # {trace_id="' + TRACE + '"} 1.0' in lines[0]
