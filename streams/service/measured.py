"""Measure the agents from outside: when events are finished, and how long the encoder takes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from agents.context_store import Encode, Prompt
from agents.ports import Source
from agents.refusals import EncoderUnavailable
from ground.messages import Record, trace_of_message
from router_state.config import Vector
from streams.service.metrics import Metrics

if TYPE_CHECKING:
    from streams.service.spans import Spans


class MeasuredSource:
    """A source that counts every event that its agent has finished, and traces its batches where
    there are spans.
    """

    def __init__(
        self, source: Source, *, topic: str, metrics: Metrics, spans: Spans | None
    ) -> None:
        self._source = source
        self._topic = topic
        self._metrics = metrics
        self._spans = spans

    async def batches(self) -> AsyncIterator[list[Record]]:
        """Yield batches as the source gives them."""
        taken = self._source.batches()
        async for messages in (
            taken if self._spans is None else self._spans.batches(self._topic, taken)
        ):
            yield messages
            now = time.time()
            waited = [now - m.timestamp / 1000 if m.timestamp else 0.0 for m in messages]
            trace_id = trace_id_of(messages[waited.index(max(waited))]) if messages else None
            self._metrics.finished(self._topic, waited, trace_id=trace_id)


def trace_id_of(message: Record) -> str | None:
    """Return the id of the trace that a message belongs to, if it names one."""
    parent = dict(trace_of_message(message)).get("traceparent")
    return None if parent is None else parent.decode().split("-")[1]


def measured(encode: Encode, metrics: Metrics) -> Encode:
    """Return an encoder that is measured."""

    async def encode_measured(prompts: list[Prompt]) -> Sequence[Vector | EncoderUnavailable]:
        with metrics.encodings.time():
            contexts = await encode(prompts)
        metrics.prompts.inc(len(prompts))
        return contexts

    return encode_measured
