"""Take events in: decode each one once, forward strays to their own partition, refuse events that
can never be read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import Struct

from ground.messages import Message, headers_of
from schemas.event import Event, MalformedEvent
from schemas.headers import is_forwarded
from schemas.quick import read
from schemas.reasons import Reason

M = TypeVar("M", bound=Message)
E = TypeVar("E", bound=Event)


class WrongPartition(Exception):
    """An event was forwarded to its router's partition, and is still on another one."""

    reason = Reason.WRONG_PARTITION
    retriable = False


class Taken(Struct, Generic[M, E], frozen=True):
    """One decoded source event. With an `error`, only the event's ids could be read."""

    message: M
    event: E
    error: MalformedEvent | None = None


@dataclass(slots=True)
class Intake(Generic[M, E]):
    """The content of one batch: events in order, strays to forward (message, router_id), refusals
    (message, error), and whether any event names a router that is not known here.
    """

    taken: list[Taken[M, E]]
    strays: list[tuple[M, str]]
    refused: list[tuple[M, Exception]]
    unknown: bool = False


def take_in(
    messages: Iterable[M],
    kind: type[E],
    *,
    partition_of: Callable[[str], int],
    max_bytes: int,
    homes: Container[str] = (),
    name: Callable[[M], E | None] = lambda message: None,
) -> Intake[M, E]:
    """Sort a batch of source messages.

    Args:
        messages: with topic, partition, offset, key, value and headers.
        partition_of: the partition of a router.
        max_bytes: the largest value that can be kept while it waits.
        homes: routers that are known to belong to this partition.
        name: function that reads the ids of a message that can't be decoded, if they are needed.
    """
    intake: Intake[M, E] = Intake([], [], [])
    for message in messages:
        try:
            taken = _decoded(message, kind, max_bytes, name)
            router_id = taken.event.router_id
            if router_id in homes:
                intake.taken.append(taken)
            elif is_at_home(message, router_id, partition_of=partition_of):
                intake.taken.append(taken)
                intake.unknown = True
            else:
                intake.strays.append((message, router_id))
        except (MalformedEvent, WrongPartition) as error:
            intake.refused.append((message, error))
    return intake


def _decoded(
    message: M, kind: type[E], max_bytes: int, name: Callable[[M], E | None]
) -> Taken[M, E]:
    try:
        event = read(kind, key=message.key, value=message.value)
        # This check comes after all reasons for which the event itself is refused, such as its
        # prompt.
        check_size(message, max_bytes)
    except MalformedEvent as error:
        named = name(message)
        if named is None:
            raise
        return Taken(message, named, error)
    return Taken(message, event)


def check_size(message: Message, max_bytes: int) -> None:
    """Raise MalformedEvent if a value is too large to be stored while the event waits."""
    if message.value is not None and len(message.value) > max_bytes:
        raise MalformedEvent(
            Reason.MALFORMED_EVENT,
            f"the value has {len(message.value)} bytes; {max_bytes} is the limit",
        )


def is_at_home(message: Message, router_id: str, *, partition_of: Callable[[str], int]) -> bool:
    """Tell whether a message is on its router's partition. Raises WrongPartition if it is not,
    although it was forwarded.
    """
    if partition_of(router_id) == message.partition:
        return True
    if is_forwarded(headers_of(message)):
        raise WrongPartition(
            "forwarded, and not on its router's partition: partition counts differ"
        )
    return False
