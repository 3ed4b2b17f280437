"""Spans of what a worker does with each batch and each traced event, if asked for
(`PB_TRACES=otlp`, extra `tracing`).

A batch has a span of its own with its phases: decode, encode, decide, commit, publish. An event
that carries a trace gets a span in that trace, linked to its batch; a bill or a label without one
belongs to the trace of its request, while that is remembered.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

import orjson
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agents.ports import Ports, States
from ground.boundary import Outbox
from ground.json_values import Document
from ground.messages import Record, headers_of
from ground.traces import trace_of

#: Requests whose trace is remembered for their bills and labels; some hundred bytes each.
REMEMBERED = 100_000


P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class Batch:
    """What is being done with one batch: its phases so far, as (name, from), nanoseconds since the
    epoch.
    """

    topic: str
    messages: list[Record]
    began: int
    phases: list[tuple[str | None, int]] = field(default_factory=list)


class Spans:
    """Make the spans of one worker.

    Args:
        provider: OpenTelemetry's, with the exporter.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("paretobandit_streams")
        self._batch: ContextVar[Batch | None] = ContextVar("batch", default=None)
        self._requests: OrderedDict[tuple[bytes, str], dict[str, str]] = OrderedDict()

    def traced(self, ports: Ports) -> Ports:
        """Return what agents are given with its encoder, table, commits and outboxes as phases of
        their batches.
        """

        def publishing() -> Outbox:
            self.begin("publish")
            return ports.outbox()

        return replace(
            ports,
            outbox=publishing,
            states=TracedStates(ports.states, self),
            commit=traced(ports.commit, "commit", self),
            encode=ports.encode and traced(ports.encode, "encode", self, resume=True),
        )

    def begin(self, phase: str | None) -> str | None:
        """Note that the current batch goes on to another phase, and return the one before; outside
        of a batch nothing happens.
        """
        batch = self._batch.get()
        if batch is None:
            return None
        before = batch.phases[-1][0] if batch.phases else None
        batch.phases.append((phase, time.time_ns()))
        return before

    async def batches(
        self, topic: str, taken: AsyncIterator[list[Record]]
    ) -> AsyncIterator[list[Record]]:
        """Pass a source's batches on; a batch is over when the next one is asked for."""
        async for messages in taken:
            began = time.time_ns()
            batch = Batch(topic, messages, began, [("decode", began)])
            self._batch.set(batch)
            yield messages
            self._batch.set(None)
            self._end(batch)

    def stop(self) -> None:
        """Export what is left."""
        self._provider.shutdown()

    def _end(self, batch: Batch) -> None:
        ended = time.time_ns()
        attributes = {"messaging.system": "kafka", "messaging.destination.name": batch.topic}
        attributes["messaging.batch.message_count"] = len(batch.messages)  # type: ignore[assignment]
        span = self._tracer.start_span(
            f"{batch.topic} batch", start_time=batch.began, attributes=attributes
        )
        inside = trace.set_span_in_context(span)
        for (phase, start), (_, end) in zip(
            batch.phases, [*batch.phases[1:], (None, ended)], strict=True
        ):
            if phase is not None:
                self._tracer.start_span(phase, context=inside, start_time=start).end(end)
        for message in batch.messages:
            self._end_event(message, batch, Link(span.get_span_context()), ended)
        span.end(ended)

    def _end_event(self, message: Record, batch: Batch, link: Link, ended: int) -> None:
        carrier, request_id = self._trace_of(message, batch.topic)
        if not carrier:
            return
        attributes: Document = {
            "messaging.system": "kafka",
            "messaging.destination.name": batch.topic,
            "messaging.destination.partition.id": str(message.partition),
            "messaging.kafka.offset": message.offset,
            "pb.router_id": (message.key or b"").decode(errors="replace"),
        }
        if request_id is not None:
            attributes["pb.request_id"] = request_id
        parent = TraceContextTextMapPropagator().extract(carrier)
        options: Document = {
            "kind": SpanKind.CONSUMER,
            "links": [link],
            "attributes": attributes,
        }
        self._tracer.start_span(
            f"{batch.topic} process", context=parent, start_time=batch.began, **options
        ).end(ended)

    def _trace_of(self, message: Record, topic: str) -> tuple[dict[str, str], str | None]:
        """Return the trace that an event belongs to, empty for none, and its request's id where it
        can be read.
        """
        carrier = {
            name: value.decode(errors="replace") for name, value in trace_of(headers_of(message))
        }
        # No event of this worker has carried a trace: none is parsed for one.
        if not carrier and not self._requests:
            return {}, None
        request_id = _request_id(message.value)
        if request_id is None:
            return carrier, None
        at = (message.key or b"", request_id)
        if topic == "requests" and carrier:
            self._requests[at] = carrier
            while len(self._requests) > REMEMBERED:
                self._requests.popitem(last=False)
        return carrier or self._requests.get(at, {}), request_id


def _request_id(value: bytes | None) -> str | None:
    try:
        event = orjson.loads(value or b"null")
    except orjson.JSONDecodeError:
        return None
    found = event.get("request_id") if isinstance(event, dict) else None
    return found if isinstance(found, str) else None


class TracedStates:
    """The durable table, as agents see it; to be its writer begins the phase `decide`."""

    def __init__(self, states: States, spans: Spans) -> None:
        self._states = states
        self._spans = spans
        self.partition = states.partition
        self.roll_back = states.roll_back

    @property
    def size(self) -> int:
        """Return how many bytes all records take in memory, about."""
        return self._states.size

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[object]:
        """Be the only writer."""
        async with self._states.writing() as states:
            self._spans.begin("decide")
            yield states


def traced(
    call: Callable[P, Awaitable[T]], phase: str, spans: Spans, *, resume: bool = False
) -> Callable[P, Awaitable[T]]:
    """Return a call that is a phase of its batch; with `resume` the phase before goes on
    afterwards.
    """

    async def in_phase(*arguments: P.args, **named: P.kwargs) -> T:
        before = spans.begin(phase)
        result = await call(*arguments, **named)
        spans.begin(before if resume else None)
        return result

    return in_phase


def otlp_spans(service: str, instance: str | None) -> Spans:
    """Return spans that go where OTEL_EXPORTER_OTLP_ENDPOINT says."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {"service.name": service} | ({"service.instance.id": instance} if instance else {})
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)
