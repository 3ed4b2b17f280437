"""Take events in: decode each one once, send strays to their own partition, refuse what can never be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from schemas.event import Event, MalformedEvent, decode_keyed
from schemas.headers import FORWARDED, is_forwarded
from schemas.reasons import Reason

E = TypeVar("E", bound=Event)


class WrongPartition(Exception):
    """An event was sent on to its router's partition, and is still on another one."""

    reason = Reason.WRONG_PARTITION
    retriable = False


@dataclass(frozen=True, slots=True)
class Taken(Generic[E]):
    """One source event, decoded."""

    message: Any
    event: E


@dataclass(slots=True)
class Intake(Generic[E]):
    """What one batch brought: events in order, strays to forward, and refusals (message, error)."""

    taken: list[Taken[E]]
    strays: list[Taken[E]]
    refused: list[tuple[Any, Exception]]


def take_in(messages: Iterable[Any], schema: type[E], *, partition_of: Callable[[str], int]) -> Intake[E]:
    """Sort a batch of source messages.

    Args:
        messages: with topic, partition, offset, key, value and headers.
        partition_of: the partition of a router.
    """
    intake: Intake[E] = Intake([], [], [])
    for message in messages:
        try:
            event = decode_keyed(schema, key=message.key, value=message.value)
        except MalformedEvent as error:
            intake.refused.append((message, error))
            continue
        if partition_of(event.router_id) == message.partition:
            intake.taken.append(Taken(message, event))
        elif is_forwarded(headers_of(message)):
            intake.refused.append(
                (message, WrongPartition("forwarded, and not on its router's partition: partition counts differ"))
            )
        else:
            intake.strays.append(Taken(message, event))
    return intake


def headers_of(message: Any) -> list[tuple[str, bytes]]:
    """Return a message's headers as pairs, however the client library hands them over."""
    headers = message.headers or ()
    return list(headers.items() if isinstance(headers, dict) else headers)


def forwarded(message: Any) -> list[tuple[str, bytes]]:
    """Return the headers with which a stray is sent on."""
    return [*headers_of(message), (FORWARDED, b"1")]
