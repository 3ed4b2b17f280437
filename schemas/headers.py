"""Headers that carry meaning beside the value: `pb.forwarded`, `pb.based_on`, `pb.repeated`,
`pb.epoch`; a trace's are in `ground.traces`.
"""

from collections.abc import Iterable
from typing import Final

from schemas.event import MalformedEvent
from schemas.fields import LARGEST_INT
from schemas.reasons import Reason

FORWARDED: Final = "pb.forwarded"
"""Header of an event that a worker sent on to its router's partition; it is never sent on twice."""

BASED_ON: Final = "pb.based_on"
"""Header of a declaration: offset of the declaration that its writer has read, in decimal digits;
-1 if there was none."""

REPEATED: Final = "pb.repeated"
"""Header of a declaration in force that a worker writes again, because it refused the one behind
it."""

EPOCH: Final = "pb.epoch"
"""Header of a grant: which owner of its pool's partition sent it, in decimal digits. A member
refuses grants of an earlier owner than the latest that it has seen, and grants without this header
once it has seen the header."""


def epoch_of(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return the epoch of the worker that wrote a grant; −1 where the headers do not say."""
    value = dict(headers).get(EPOCH)
    return int(value) if value is not None and value.isdigit() and len(value) <= 16 else -1


def based_on(headers: Iterable[tuple[str, bytes | None]]) -> int | None:
    """Read the offset that a declaration is conditional on: −1 if no other may be in force, None
    without a condition.

    Raises:
        MalformedEvent: the header is not an offset in decimal digits.
    """
    named = dict(headers)
    if BASED_ON not in named:
        return None
    value = named[BASED_ON]
    if value == b"-1":
        return -1
    # A header without a value is null to some clients.
    if value is None or not value.isdigit() or len(value) > 16 or int(value) > LARGEST_INT:
        raise MalformedEvent(Reason.MALFORMED_EVENT, f"header {BASED_ON} is not an offset")
    return int(value)


def is_forwarded(headers: Iterable[tuple[str, bytes]]) -> bool:
    """Tell whether the event was already sent on by a worker."""
    return any(name == FORWARDED for name, _ in headers)
