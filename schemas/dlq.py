"""Topic `dlq`: refused records, bytes untouched; headers tell where they came from and why.

Key: the source's, null included. Value: the source's. Version 1. Compatible: new headers, new
reasons. The names follow Kafka Connect, so that tools for its dead letters read these as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from schemas.event import MalformedEvent
from schemas.reasons import Reason

TOPIC: Final = "dlq"
"""The topic's name without the prefix; a record keeps its source's key."""
INGEST: Final = "ingest"
"""Stage of payloads of other systems that cannot be mapped; their topic is not the service's."""
MAX_MESSAGE_CHARACTERS: Final = 500
"""Longest text of an exception; the rest is cut."""
VALUE_OMITTED: Final = "pb.value_omitted"
"""Header of a letter whose value was too large even for this topic: the value's number of bytes."""

_PREFIX = "__connect.errors."
"""Headers as Kafka Connect names them (KIP-298), for tools that read its dead letters."""
SOURCE_TOPIC: Final = _PREFIX + "topic"
"""Full name of the topic that the event was read from."""
SOURCE_PARTITION: Final = _PREFIX + "partition"
"""Partition that the event was read from, in decimal digits."""
SOURCE_OFFSET: Final = _PREFIX + "offset"
"""Offset that the event was read from, in decimal digits; with topic and partition it identifies
the event."""
STAGE: Final = _PREFIX + "stage"
"""Step that failed."""
EXCEPTION_CLASS: Final = _PREFIX + "exception.class.name"
"""Name of the error's Python class."""
EXCEPTION_MESSAGE: Final = _PREFIX + "exception.message"
"""Text of the error; it quotes nothing of the event."""
REASON: Final = "pb.reason"
"""A code of `schemas.reasons`."""
HEADERS: Final = (
    SOURCE_TOPIC,
    SOURCE_PARTITION,
    SOURCE_OFFSET,
    STAGE,
    EXCEPTION_CLASS,
    EXCEPTION_MESSAGE,
    REASON,
)
"""Headers that every letter has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """The place of a refused record, and the reason why it was refused.

    `topic` is the full name; `stage` is the step that failed (`decode`, or the agent's name);
    `reason` is a `Reason`, or a code that a newer version wrote. `message` must hold no value of
    the event but a number that is out of its bounds.
    """

    topic: str
    partition: int
    offset: int
    stage: str
    exception_class: str
    message: str
    reason: str

    @classmethod
    def of(cls, error: Exception, *, topic: str, partition: int, offset: int, stage: str) -> Self:
        """Describe a refusal. An error without a `reason` is internal; its text is left out, as it
        may quote the event.
        """
        known: Reason | str | None = getattr(error, "reason", None)
        kind = type(error)
        return cls(
            topic=topic,
            partition=partition,
            offset=offset,
            stage=stage,
            exception_class=f"{kind.__module__}.{kind.__qualname__}",
            message=str(error)[:MAX_MESSAGE_CHARACTERS] if known else "",
            reason=str(known or Reason.INTERNAL_ERROR),
        )

    def headers(self) -> list[tuple[str, bytes]]:
        """Write the headers of the dead letter, UTF-8."""
        values = (
            self.topic,
            str(self.partition),
            str(self.offset),
            self.stage,
            self.exception_class,
            self.message,
            self.reason,
        )
        return [
            (name, value.encode(errors="replace"))
            for name, value in zip(HEADERS, values, strict=True)
        ]

    @classmethod
    def from_headers(cls, headers: Iterable[tuple[str, bytes]]) -> Self:
        """Read the headers of a dead letter. If a name is repeated, its last header counts;
        others are ignored.

        Raises:
            MalformedEvent: a header is missing, not UTF-8, or a partition or offset is not a
            number.
        """
        found = dict(headers)
        try:
            topic, partition, offset, stage, exception, message, reason = (
                found[name].decode() for name in HEADERS
            )
            return cls(
                topic=topic,
                partition=int(partition),
                offset=int(offset),
                stage=stage,
                exception_class=exception,
                message=message,
                reason=reason,
            )
        except KeyError as missing:
            raise MalformedEvent(
                Reason.MALFORMED_EVENT, f"header {missing.args[0]} is missing"
            ) from None
        except (ValueError, AttributeError):
            raise MalformedEvent(
                Reason.MALFORMED_EVENT, "a header of the dead letter is unreadable"
            ) from None
