"""Remember LiteLLM's streams until they end. A reader that goes away ends none: LiteLLM then tells
nobody what the call cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

SILENT_SECONDS = 60.0
"""Seconds without a chunk after which a stream counts as abandoned; if it ends all the same, its
bill replaces the one before."""


@dataclass(slots=True)
class Stream:
    """A stream that is being read.

    Attributes:
        call: the arguments of its call.
        text: the answer so far.
        chunk_at: time of its last chunk, by the loop's clock.
    """

    call: Mapping[str, Any]
    chunk_at: float
    text: list[str] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class Streams:
    """The streams that have neither ended nor failed, by request.

    Args:
        abandoned: called once with a stream that has been silent for too long.
    """

    def __init__(self, abandoned: Callable[[str, Stream], None]) -> None:
        self._abandoned = abandoned
        self._streams: dict[str, Stream] = {}

    def begin(self, request_id: str, call: Mapping[str, Any]) -> None:
        """Expect chunks of a call."""
        self.end(request_id)
        self._streams[request_id] = stream = Stream(call, asyncio.get_running_loop().time())
        self._wait(request_id, stream)

    def add(self, request_id: str, chunk: object) -> None:
        """Take in a chunk."""
        if (stream := self._streams.get(request_id)) is not None:
            stream.chunk_at = asyncio.get_running_loop().time()
            stream.text += _texts(chunk)

    def end(self, request_id: str) -> None:
        """Forget a stream: its call has ended, or failed."""
        stream = self._streams.pop(request_id, None)
        if stream is not None and stream.timer is not None:
            stream.timer.cancel()

    def give_up(self) -> None:
        """Treat all streams as abandoned."""
        for request_id in list(self._streams):
            self._leave(request_id)

    def _wait(self, request_id: str, stream: Stream) -> None:
        loop = asyncio.get_running_loop()
        stream.timer = loop.call_at(stream.chunk_at + SILENT_SECONDS, self._look, request_id)

    def _look(self, request_id: str) -> None:
        stream = self._streams[request_id]
        if stream.chunk_at + SILENT_SECONDS > asyncio.get_running_loop().time():
            self._wait(request_id, stream)
        else:
            self._leave(request_id)

    def _leave(self, request_id: str) -> None:
        stream = self._streams[request_id]
        self.end(request_id)
        self._abandoned(request_id, stream)


def _texts(chunk: object) -> list[str]:
    """Return what a chunk adds to the answer, reasoning included: it is paid for as well."""
    deltas = [getattr(choice, "delta", None) for choice in getattr(chunk, "choices", None) or ()]
    found = [
        getattr(delta, name, None) for delta in deltas for name in ("content", "reasoning_content")
    ]
    return [text for text in found if isinstance(text, str)]
