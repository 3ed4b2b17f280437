"""A trace goes from an event to everything that is said about it, and spans tell what was done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cloudevents.http import CloudEvent
from cloudevents.kafka import KafkaMessage, from_binary, to_binary
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest
from prometheus_client.exposition import choose_encoder

from agents.table.parking import Parked
from ground.traces import trace_of
from streams.service.cloud_event_headers import as_cloud_events
from streams.service.spans import Spans
from streams.service.worker_metrics import Metrics
from streams.settings import Settings
from tests.audit_world import DIMENSIONS, World, router
from tests.memory_worker import MemoryWorker

HOME = "home"
CONTEXT = [0.1] * (DIMENSIONS - 1) + [1.0]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01".encode()
HEADERS = [("traceparent", PARENT), ("tracestate", b"acme=1"), ("other", b"stays behind")]
PASSED = {"traceparent": PARENT.decode(), "tracestate": "acme=1"}


def request(request_id: str, **changed: Any) -> dict[str, Any]:
    return {"router_id": HOME, "request_id": request_id, "context": CONTEXT, **changed}


@pytest.fixture
async def world() -> World:
    world = World(Settings(prefix="pb.", app_id="traced", partitions=1))
    await world.start()
    return world


def passed(record: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in record.headers.items()
        if name in ("traceparent", "tracestate", "other")
    }


async def test_decision_has_its_requests_trace_also_when_it_is_repeated_or_waited_for_its_router(
    world: World,
) -> None:
    await world.send("requests", request("early"), headers=HEADERS)
    await world.send("routers", router(HOME))
    await world.send("requests", request("late"), headers=HEADERS)
    await world.send("requests", request("late"), headers=[("traceparent", PARENT)])
    await world.send("requests", request("untraced"))
    found = {
        (
            json.loads(record.value or b"")["request_id"],
            json.loads(record.value or b"")["repeat"],
        ): passed(record)
        for record in world.records["routes", 0]
    }
    assert found == {
        ("early", False): PASSED,
        ("late", False): PASSED,
        ("late", True): {"traceparent": PARENT.decode()},
        ("untraced", False): {},
    }


async def test_dead_letters_and_refusals_of_requests_bills_and_labels_have_their_trace(
    world: World,
) -> None:
    await world.send("routers", router(HOME))
    await world.send("requests", request("r-1", allowed_models=["nobody"]), headers=HEADERS)
    await world.send(
        "costs", {"router_id": HOME, "request_id": "r-1", "cost_usd": -1.0}, headers=HEADERS
    )
    await world.send(
        "rewards",
        {"router_id": HOME, "request_id": "never", "reward": 1.0, "source": "judge"},
        headers=HEADERS,
    )
    await world.pass_time(100.0)
    for topic in ("dlq", "refusals"):
        assert [passed(record) for record in world.records[topic, 0]] == [PASSED] * 3


def test_parked_request_keeps_its_trace_over_a_crash() -> None:
    message = SimpleNamespace(
        topic="pb.requests", partition=0, offset=7, key=b"k", value=b"{}", headers=HEADERS
    )
    for headers in (HEADERS, []):
        message.headers = headers
        parked = Parked.of(message, KeyError("x"), router_id=HOME, private=True)
        again = Parked.unpack(parked.pack())
        assert (again.trace, again.value, again.key) == (trace_of(headers), None, b"k")


def test_parked_bill_keeps_its_trace_and_its_value() -> None:
    message = SimpleNamespace(topic="pb.costs", partition=0, offset=7, key=b"k", headers=HEADERS)
    for message.value, message.headers in ((b"{}", HEADERS), (b"", HEADERS), (b"{}", [])):
        bill = Parked.of(message, KeyError("x"), router_id=HOME, request_id="r")
        assert Parked.unpack(bill.pack()) == bill and bill.trace == trace_of(message.headers)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"00-" + b"0" * 32 + b"-00f067aa0ba902b7-01",
        PARENT.upper(),
        b"ff" + PARENT[2:],
        PARENT[:-1],
        PARENT + b"-" + b"x" * 200,
        b"\xff\xfe",
    ],
)
def test_unreadable_trace_is_no_trace(bad: bytes) -> None:
    assert trace_of([("traceparent", bad), ("tracestate", b"acme=1")]) == ()


def test_oversized_tracestate_is_left_out() -> None:
    assert trace_of([("traceparent", PARENT), ("tracestate", b"a" * 513)]) == (
        ("traceparent", PARENT),
    )


class Traced:
    """A memory worker with spans that stay in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = Spans(provider)
        self.metrics = Metrics()
        self.worker = MemoryWorker(Settings(prefix="pb.", app_id="traced", partitions=1), [0])
        self.offsets: Counter[str] = Counter()

    async def take(
        self,
        topic: str,
        events: Sequence[tuple[dict[str, Any], Sequence[tuple[str, bytes]]]],
    ) -> None:
        messages = [
            SimpleNamespace(
                topic=f"pb.{topic}",
                partition=0,
                offset=self.offsets[topic] + at,
                key=HOME.encode(),
                value=json.dumps(event).encode(),
                headers=headers,
                timestamp=0.0,
            )
            for at, (event, headers) in enumerate(events)
        ]
        self.offsets[topic] += len(messages)
        await self.worker.take(topic, messages)
        for group in self.worker.finished:
            self.metrics.group(group)
            self.spans.group(group)
        self.worker.finished.clear()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


async def test_the_slowest_traced_event_of_a_batch_is_an_exemplar_in_openmetrics() -> None:
    traced = Traced()
    await traced.worker.start()
    await traced.take("requests", [(request("r-1"), HEADERS)])
    encode, content_type = choose_encoder("application/openmetrics-text; version=1.0.0")
    page = encode(traced.metrics.registry).decode()
    (line,) = (line for line in page.splitlines() if TRACE in line)
    assert line.startswith("pb_event_seconds_bucket{") and content_type.startswith("application/")
    await traced.take("requests", [(request("r-2"), [])])
    assert encode(traced.metrics.registry).decode().count(TRACE) == 1
    assert TRACE not in generate_latest(traced.metrics.registry).decode()


async def test_spans_of_a_batch_its_phases_and_its_traced_events() -> None:
    traced = Traced()
    await traced.worker.start()
    await traced.worker.take(
        "routers",
        [
            SimpleNamespace(
                topic="pb.routers",
                partition=0,
                offset=0,
                key=HOME.encode(),
                value=json.dumps(router(HOME)).encode(),
                headers=[],
                timestamp=0.0,
            )
        ],
    )
    await traced.take("requests", [(request("r-1"), HEADERS), (request("r-2"), [])])

    (batch,) = traced.named("requests batch")
    phases = [
        name
        for name in ("decode", "decide", "commit", "publish")
        for span in traced.named(name)
        if span.parent and batch.context and span.parent.span_id == batch.context.span_id
    ]
    assert phases == ["decode", "decide", "commit", "publish"]
    (event,) = traced.named("requests process")
    assert event.context is not None
    assert event.context.trace_id == int(TRACE, 16)
    assert event.attributes is not None
    assert event.attributes["pb.request_id"] == "r-1"
    assert event.attributes["pb.model"] in router(HOME)["models"]
    assert 0.0 < event.attributes["pb.propensity"] <= 1.0  # type: ignore[operator]
    assert [link.context.span_id for link in event.links] == [
        batch.context.span_id if batch.context else None
    ]
    assert all(
        span.end_time is not None
        and span.start_time is not None
        and span.end_time >= span.start_time
        for span in traced.exporter.get_finished_spans()
    )


async def test_bill_without_a_trace_belongs_to_the_trace_of_its_request() -> None:
    traced = Traced()
    await traced.worker.start()
    await traced.take("requests", [(request("r-1"), HEADERS)])
    await traced.take(
        "costs",
        [
            ({"router_id": HOME, "request_id": name, "cost_usd": 0.1}, [])
            for name in ("r-1", "other")
        ],
    )
    (bill,) = traced.named("costs process")
    assert bill.context is not None
    assert bill.context.trace_id == int(TRACE, 16)


async def test_what_is_said_is_a_cloud_event_that_the_library_reads() -> None:
    sent: list[Any] = []

    async def send(*record: Any, **named: Any) -> Any:
        sent.append(record)

    say = as_cloud_events(send, prefix="pb.", source="urn:acme:router")
    value = json.dumps({"router_id": HOME, "seq": 1}).encode()
    await say("pb.routes", value, HOME.encode(), headers=[("traceparent", PARENT)])
    await say("pb.routes", value, HOME.encode())
    await say("pb.lambda", None, HOME.encode())
    await say("pb.dlq", b"\xff", b"k", headers=[("pb.reason", b"x")])
    (_, value, key, _, headers), again, tombstone, letter = sent
    event = from_binary(KafkaMessage(headers=dict(headers), key=key, value=value))
    assert event["type"] == "paretobandit.routes.v1"
    assert (event["source"], event["subject"], event.data) == (
        "urn:acme:router",
        HOME,
        {"router_id": HOME, "seq": 1},
    )
    assert dict(headers)["ce_id"] == dict(again[4])["ce_id"]
    assert dict(headers)["traceparent"] == PARENT
    assert tombstone[4] is None
    assert letter[4] == [("pb.reason", b"x")]


async def test_cloud_event_of_the_library_is_read_as_a_request(world: World) -> None:
    await world.send("routers", router(HOME))
    made = to_binary(
        CloudEvent(
            {"type": "app.request", "source": "app", "datacontenttype": "application/json"},
            request("r-1"),
        ),
        key_mapper=lambda event: HOME,
    )
    assert isinstance(made.value, bytes)
    await world.send("requests", made.value, key=HOME.encode(), headers=list(made.headers.items()))
    assert [
        json.loads(record.value or b"")["request_id"] for record in world.records["routes", 0]
    ] == ["r-1"]


def test_spans_remember_a_bounded_number_of_requests() -> None:
    spans = Spans(TracerProvider(), remembered=10)
    for number in np.arange(50):
        message = SimpleNamespace(
            key=b"k", value=json.dumps({"request_id": f"r-{number}"}).encode(), headers=HEADERS
        )
        spans._trace_of(message, "requests")
    assert len(spans._requests) == 10
