"""Trace each batch and each traced event of a worker, if asked for (`PB_TRACES=otlp`, extra
`tracing`).

A batch has a span of its own with its phases: decode, encode, decide, commit, publish. An event
that carries a trace gets a span in that trace, linked to its batch. A bill or a label without a
trace gets its span in the trace of its request, if the worker still remembers that trace.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agents.group import Batch, Group, Passed
from ground.json_text import loads
from ground.json_values import Document
from ground.messages import Record, headers_of, key_text
from ground.traces import trace_of

DECIDED = ("model", "reason", "propensity", "expected_reward", "expected_cost_usd", "lambda_t")
"""Fields of a decision that stand on the span of its request, as `pb.NAME`."""
Decided = dict[tuple[str, str | None], Document]
"""Attributes of decisions by router and request."""
REMEMBERED = 100_000
"""Requests whose trace is remembered for their bills and labels; some hundred bytes each."""


class Spans:
    """Make the spans of one worker.

    Args:
        provider: OpenTelemetry's, with the exporter.
        remembered: most requests whose trace is kept for their bills and labels.
    """

    def __init__(self, provider: TracerProvider, *, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._provider = provider
        self._tracer = provider.get_tracer("paretobandit_streams")
        self._requests: OrderedDict[tuple[bytes, str], dict[str, str]] = OrderedDict()

    def group(self, group: Group) -> None:
        """Make the spans of a group that is finished, those of each topic apart."""
        decided = _decided(group)
        for batch in group.batches:
            self._end(batch, group.passed, decided, time.time_ns())

    def stop(self) -> None:
        """Export what is left."""
        self._provider.shutdown()

    def _end(self, batch: Batch, passed: Passed, decided: Decided, ended: int) -> None:
        phases = [*batch.passed, *passed]
        attributes = {"messaging.system": "kafka", "messaging.destination.name": batch.name}
        attributes["messaging.batch.message_count"] = len(batch.messages)  # type: ignore[assignment]
        span = self._tracer.start_span(
            f"{batch.name} batch", start_time=phases[0][1], attributes=attributes
        )
        inside = trace.set_span_in_context(span)
        for (phase, start), (_, end) in zip(phases, [*phases[1:], ("", ended)], strict=True):
            self._tracer.start_span(phase, context=inside, start_time=start).end(end)
        for message in batch.messages:
            self._end_event(message, batch, decided, Link(span.get_span_context()), ended)
        span.end(ended)

    def _end_event(
        self, message: Record, batch: Batch, decided: Decided, link: Link, ended: int
    ) -> None:
        carrier, request_id = self._trace_of(message, batch.name)
        if not carrier:
            return
        attributes: Document = {
            "messaging.system": "kafka",
            "messaging.destination.name": batch.name,
            "messaging.destination.partition.id": str(message.partition),
            "messaging.kafka.offset": message.offset,
            "pb.router_id": key_text(message),
        }
        if request_id is not None:
            attributes["pb.request_id"] = request_id
        if batch.name == "requests":
            attributes |= decided.get((attributes["pb.router_id"], request_id), {})
        parent = TraceContextTextMapPropagator().extract(carrier)
        options: Document = {
            "kind": SpanKind.CONSUMER,
            "links": [link],
            "attributes": attributes,
        }
        self._tracer.start_span(
            f"{batch.name} process", context=parent, start_time=batch.passed[0][1], **options
        ).end(ended)

    def _trace_of(self, message: Record, topic: str) -> tuple[dict[str, str], str | None]:
        """Return the trace that an event belongs to (empty for none), and the id of the event's
        request if it can be read.
        """
        carrier = {
            name: value.decode(errors="replace") for name, value in trace_of(headers_of(message))
        }
        # No event of this worker has carried a trace yet, so none is parsed.
        if not carrier and not self._requests:
            return {}, None
        request_id = _request_id(message.value)
        if request_id is None:
            return carrier, None
        at = (message.key or b"", request_id)
        if topic == "requests" and carrier:
            self._requests[at] = carrier
            while len(self._requests) > self._remembered:
                self._requests.popitem(last=False)
        return carrier or self._requests.get(at, {}), request_id


def _decided(group: Group) -> Decided:
    """Return the attributes of a group's decisions that belong to a trace."""
    routes = (loads(value) for _, value, trace in group.answers.routes if trace)
    return {
        (route["router_id"], route["request_id"]): {
            f"pb.{name}": route[name] for name in DECIDED if route.get(name) is not None
        }
        for route in routes
    }


def _request_id(value: bytes | None) -> str | None:
    try:
        event = loads(value or b"null")
    except ValueError:
        return None
    found = event.get("request_id") if isinstance(event, dict) else None
    return found if isinstance(found, str) else None


def otlp_spans(service: str, instance: str | None) -> Spans:
    """Return spans that are exported to the address in OTEL_EXPORTER_OTLP_ENDPOINT."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {"service.name": service} | ({"service.instance.id": instance} if instance else {})
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)
