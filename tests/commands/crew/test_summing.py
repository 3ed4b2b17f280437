"""The metrics of several workers as one's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from commands.crew.crew import Crew, member_settings
from commands.crew.member import Member
from commands.crew.summing import Sums
from streams.service.worker_metrics import Metrics
from streams.settings import Settings


def page(*, events: int, ready: int, partitions: int, seconds: float = 0.02) -> str:
    """Return what a worker answers to a scrape."""
    metrics = Metrics()
    sent = SimpleNamespace(timestamp=1_000_000, headers=())
    metrics.finished("requests", [sent] * events, now=1_000 + seconds)
    metrics.ready.set(ready)
    metrics.partitions.set(partitions)
    metrics.topic_partitions.set(8)
    return generate_latest(metrics.registry).decode()


def values(sums: Sums) -> dict[str, float]:
    """Return every sample by its name, those of requests where there are labels."""
    return {
        sample.name + sample.labels.get("le", ""): sample.value
        for metric in text_string_to_metric_families(sums.page().decode())
        for sample in metric.samples
        if sample.labels.get("topic", "requests") == "requests"
    }


def test_what_is_counted_is_added_and_states_are_the_worst() -> None:
    sums = Sums(CollectorRegistry())
    sums.take(0, page(events=3, ready=1, partitions=5))
    sums.take(1, page(events=4, ready=0, partitions=3, seconds=0.2))
    found = values(sums)
    assert found["pb_events_total"] == found["pb_event_seconds_count"] == 7
    assert (found["pb_event_seconds_bucket0.025"], found["pb_event_seconds_bucket0.25"]) == (3, 7)
    assert (found["pb_partitions"], found["pb_topic_partitions"]) == (8, 8)
    assert (found["pb_ready"], found["pb_build_info"]) == (0, 1)


def test_no_count_falls_when_a_member_is_replaced() -> None:
    sums = Sums(CollectorRegistry())
    sums.take(0, page(events=3, ready=1, partitions=5))
    sums.take(1, page(events=4, ready=1, partitions=3))
    for _ in range(2):
        sums.ended(0)
        found = values(sums)
        assert (found["pb_events_total"], found["pb_partitions"]) == (7, 3)
    sums.take(0, page(events=2, ready=1, partitions=4))
    sums.take(1, page(events=5, ready=1, partitions=4))
    found = values(sums)
    assert (found["pb_events_total"], found["pb_partitions"]) == (10, 8)


async def test_a_member_that_ends_while_others_are_asked_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crew = Crew(Settings(), processes=2, log_level="info")
    one_ended, other_asked = asyncio.Event(), asyncio.Event()
    members = crew._members
    for member in members:
        member.address = f"http://127.0.0.1:{member.number}"

    async def ask(member: Member, path: str) -> tuple[int, str]:
        if member.number:  # slower than the first member's end
            other_asked.set()
            await one_ended.wait()
        return 200, page(events=3, ready=1, partitions=4)

    monkeypatch.setattr(crew, "_ask", ask)
    one_ended.set()
    await crew.scrape()
    one_ended.clear()
    other_asked.clear()
    scraping = asyncio.create_task(crew.scrape())
    await other_asked.wait()
    members[0].address = None
    crew.sums.ended(0)
    one_ended.set()
    await scraping
    assert values(crew.sums)["pb_events_total"] == 6


def test_sums_are_what_a_worker_would_say() -> None:
    sums, one = Sums(CollectorRegistry()), page(events=3, ready=1, partitions=5)
    sums.take(0, one)

    def series(text: str) -> list[tuple[object, ...]]:
        metrics = text_string_to_metric_families(text)
        return [
            (m.name, m.type, m.documentation, s.name, sorted(s.labels.items()), s.value)
            for m in metrics
            for s in m.samples
        ]

    assert series(sums.page().decode()) == series(one)


def test_members_share_the_memory_and_have_names_and_ports_of_their_own() -> None:
    settings = Settings(memory_bytes=2**30, instance_id="pod", web_bind="0.0.0.0", web_port=80)
    members = [member_settings(settings, number, of=4) for number in range(4)]
    assert {m.memory_bytes for m in members} == {2**28}
    assert [m.instance_id for m in members] == ["pod-0", "pod-1", "pod-2", "pod-3"]
    assert {(m.web_bind, m.web_port) for m in members} == {("127.0.0.1", 0)}
    assert member_settings(Settings(), 1, of=2).instance_id is None
