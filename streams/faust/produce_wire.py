"""Write produce requests and read their answers with one `struct` call a partition, as
`streams.faust.fetch_wire` does with fetches.
"""

from __future__ import annotations

from io import BytesIO
from struct import Struct

from aiokafka.producer import sender
from aiokafka.protocol.produce import ProduceRequest_v7, ProduceResponse_v7

from streams.faust.fetch_wire import NUMBER, text, topic_at

HEAD = Struct(">hii")
"""Acknowledgements, milliseconds that the broker has, number of topics."""
SENT = Struct(">ii")
"""Partition, size of its records."""
PLACED = Struct(">ihqqq")
"""Partition, error, first offset, time of the log, start of the log."""


class QuickResponse(ProduceResponse_v7):  # type: ignore[misc]
    """The answer to a produce request, read at once."""

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> QuickResponse:
        """Return what aiokafka returns for the same bytes. Raises struct.error where bytes are
        missing.
        """
        stream = BytesIO(data) if isinstance(data, bytes) else data
        content, at = stream.getvalue(), stream.tell()
        (count,) = NUMBER.unpack_from(content, at)
        at += NUMBER.size
        topics = []
        for _ in range(count):
            name, partitions, at = topic_at(content, at)
            found = [PLACED.unpack_from(content, at + i * PLACED.size) for i in range(partitions)]
            topics.append((name, found))
            at += partitions * PLACED.size
        return cls(topics, *NUMBER.unpack_from(content, at))


class QuickRequest(ProduceRequest_v7):  # type: ignore[misc]
    """A produce request, written at once."""

    RESPONSE_TYPE = QuickResponse

    def encode(self) -> bytes:
        """Return the bytes that aiokafka writes for the same request."""
        said = self.__dict__
        head = HEAD.pack(said["required_acks"], said["timeout"], len(said["topics"]))
        parts = [text(said["transactional_id"]), head]
        for topic, partitions in said["topics"]:
            parts += (text(topic), NUMBER.pack(len(partitions)))
            for partition, records in partitions:
                parts += (SENT.pack(partition, len(records)), records)
        return b"".join(parts)


class ProduceRequest(sender.ProduceRequest):  # type: ignore[misc]
    """A produce request that is `QuickRequest` where the broker knows its version."""

    def build(self, request_struct_class: type[ProduceRequest_v7]) -> ProduceRequest_v7:
        """Return the request of a version."""
        if request_struct_class is ProduceRequest_v7:
            return super().build(QuickRequest)
        return super().build(request_struct_class)


def produce_quickly() -> None:
    """Let every producer of this process write and read its requests with `QuickRequest`."""
    sender.ProduceRequest = ProduceRequest
