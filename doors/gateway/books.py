"""Keep every router's last state, as `pb.lambda` has it."""

from __future__ import annotations

from doors.console.reader import TopicReader
from ground.messages import Record
from streams.settings import Settings


class Books:
    """A copy of the compacted topic, kept up to date; it is small: one record a router."""

    def __init__(self, settings: Settings) -> None:
        self.reader = TopicReader(settings, [("lambda",)], self._take)
        self._last: dict[bytes, bytes] = {}

    def __getitem__(self, router_id: str) -> bytes | None:
        return self._last.get(router_id.encode())

    def _take(self, name: str, record: Record, *, now: float) -> None:
        if record.key is not None and record.value is not None:
            self._last[record.key] = record.value
        # A tombstone: the router is gone, and its page is a 404 again.
        elif record.key is not None:
            self._last.pop(record.key, None)
