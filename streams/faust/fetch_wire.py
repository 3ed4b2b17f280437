"""Write fetch requests and read their answers with one `struct` call a partition.

aiokafka's own protocol takes a call for each field, 13 of each partition. A worker has 48 source
partitions and asks for all of them in each fetch, so that took a seventh of its CPU.
"""

from __future__ import annotations

from io import BytesIO
from struct import Struct

from aiokafka.consumer import fetcher
from aiokafka.protocol.fetch import FetchRequest_v11, FetchResponse_v11

HEAD = Struct(">iiiibiii")
"""Replica, longest wait, least and most bytes, isolation, session, its epoch, number of topics."""
ASKED = Struct(">iiqqi")
"""Partition, leader epoch, offset, start of the log, most bytes."""
ANSWER = Struct(">ihii")
"""Throttle time, error, session, number of topics."""
GOT = Struct(">ihqqqiii")
"""Partition, error, end, last stable offset, start of the log, number of aborted transactions; then
preferred replica and size of the records, unless aborted transactions stand before these. -1 stands
for None."""
ABORTED = Struct(">qq")
"""Producer, first offset."""
RECORDS = Struct(">ii")
"""Preferred replica, size of the records, behind aborted transactions."""
NUMBER, LENGTH = Struct(">i"), Struct(">h")

Got = tuple[int, int, int, int, int, list[tuple[int, int]] | None, int, bytes | None]


def text(value: str | None) -> bytes:
    """Return a text as it is on the wire, behind its length; -1 stands for None."""
    if value is None:
        return LENGTH.pack(-1)
    encoded = value.encode()
    return LENGTH.pack(len(encoded)) + encoded


def topic_at(content: bytes, at: int) -> tuple[str, int, int]:
    """Return the name of the topic at a position, the number of its partitions, and the position
    of the first one.
    """
    (length,) = LENGTH.unpack_from(content, at)
    at += LENGTH.size + length
    (partitions,) = NUMBER.unpack_from(content, at)
    return content[at - length : at].decode(), partitions, at + NUMBER.size


class QuickResponse(FetchResponse_v11):  # type: ignore[misc]
    """The answer to a fetch, read at once."""

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> QuickResponse:
        """Return what aiokafka returns for the same bytes. Raises struct.error and ValueError where
        bytes are missing.
        """
        stream = BytesIO(data) if isinstance(data, bytes) else data
        content, at = stream.getvalue(), stream.tell()
        throttled, error, session, count = ANSWER.unpack_from(content, at)
        at += ANSWER.size
        topics = []
        for _ in range(count):
            name, partitions, at = topic_at(content, at)
            found: list[Got] = []
            for _ in range(partitions):
                partition, error_code, end, stable, start, count, replica, size = GOT.unpack_from(
                    content, at
                )
                at += GOT.size
                aborted: list[tuple[int, int]] | None = None if count < 0 else []
                if count > 0:
                    at -= RECORDS.size
                    last = at + count * ABORTED.size
                    aborted = [*ABORTED.iter_unpack(content[at:last])]
                    replica, size = RECORDS.unpack_from(content, last)
                    at = last + RECORDS.size
                records = None
                if size >= 0:
                    records = content[at : at + size]
                    at += size
                found.append((partition, error_code, end, stable, start, aborted, replica, records))
            topics.append((name, found))
        if at > len(content):
            raise ValueError(f"a fetch's answer of {len(content)} bytes names {at}")
        return cls(throttled, error, session, topics)


class QuickRequest(FetchRequest_v11):  # type: ignore[misc]
    """A fetch request whose bytes are packed directly, without aiokafka's schema."""

    RESPONSE_TYPE = QuickResponse

    def encode(self) -> bytes:
        """Return the bytes that aiokafka writes for the same request."""
        asked = self.__dict__
        head = HEAD.pack(
            asked["replica_id"],
            asked["max_wait_time"],
            asked["min_bytes"],
            asked["max_bytes"],
            asked["isolation_level"],
            asked["session_id"],
            asked["session_epoch"],
            len(asked["topics"]),
        )
        parts = [head]
        for topic, partitions in asked["topics"]:
            parts += (text(topic), NUMBER.pack(len(partitions)))
            parts += [ASKED.pack(*partition) for partition in partitions]
        # No session, so nothing of it is forgotten.
        parts += (NUMBER.pack(0), text(asked["rack_id"]))
        return b"".join(parts)


class FetchRequest(fetcher.FetchRequest):  # type: ignore[misc]
    """A builder of fetch requests: a `QuickRequest` if the broker knows version 11."""

    def build(self, request_struct_class: type[FetchRequest_v11]) -> FetchRequest_v11:
        """Return the request of a version."""
        if request_struct_class is FetchRequest_v11:
            return super().build(QuickRequest)
        return super().build(request_struct_class)


def fetch_quickly() -> None:
    """Let every consumer of this process use `QuickRequest` and `QuickResponse`."""
    fetcher.FetchRequest = FetchRequest
