"""Measure the agents from outside: when events are finished, and how long the encoder takes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from agents.contexts import Encode
from agents.refusals import EncoderUnavailable
from router_state.config import Vector
from streams.service.metrics import Metrics

if TYPE_CHECKING:
    from streams.service.spans import Spans


class MeasuredStream:
    """An agent's stream that counts every event that the agent acks, and traces its batches where there are spans."""

    def __init__(self, stream: Any, topic: str, metrics: Metrics, spans: Spans | None) -> None:
        self._stream = stream
        self._topic = topic
        self._metrics = metrics
        self._spans = spans

    def noack_take(self, size: int, within: float) -> AsyncIterator[Any]:
        """Take batches as the stream gives them."""
        taken: AsyncIterator[Any] = self._stream.noack_take(size, within=within)
        return taken if self._spans is None else self._spans.batches(self._topic, taken)

    async def ack(self, event: Any) -> None:
        """Ack an event, which is finished."""
        await self._stream.ack(event)
        sent = event.message.timestamp
        self._metrics.finished(self._topic, time.time() - sent if sent else 0.0)


def measured(encode: Encode, metrics: Metrics) -> Encode:
    """Return an encoder that is measured."""

    async def encode_measured(prompts: list[str]) -> Sequence[Vector | EncoderUnavailable]:
        with metrics.encodings.time():
            contexts = await encode(prompts)
        metrics.prompts.inc(len(prompts))
        return contexts

    return encode_measured
