"""Find dead letters by place, router, reason and source, and send them again if they may be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from doors.console.bus import Bus
from doors.console.failures import Failure
from ground.json_text import loads
from ground.messages import Placed, Record
from ground.texts import is_valid
from schemas import DeadLetter, MalformedEvent, Reason
from schemas.dlq import INGEST, VALUE_OMITTED

RETRIED = "pb.retried"
"""Header of an event that was sent again: its dead letter's place, as partition:offset."""
HOPELESS = frozenset(
    {
        Reason.MALFORMED_JSON,
        Reason.MALFORMED_EVENT,
        Reason.MISSING_FIELD,
        Reason.INVALID_FIELD,
        Reason.NON_FINITE,
        Reason.WRONG_KEY,
        Reason.MISSING_PROMPT,
        Reason.EMPTY_PROMPT,
        Reason.PROMPT_TOO_LARGE,
        Reason.COST_OUT_OF_RANGE,
        Reason.REWARD_OUT_OF_RANGE,
    }
)
"""Reasons for which an event would always be refused again."""


@dataclass(frozen=True, slots=True)
class Found:
    """A dead letter and its place on `pb.dlq`."""

    partition: int
    offset: int
    at: datetime
    letter: DeadLetter
    topic: str
    key: bytes | None
    value: bytes | None
    omitted: bool

    @property
    def name(self) -> str:
        """Return its name in commands."""
        return f"{self.partition}:{self.offset}"

    @property
    def router_id(self) -> str | None:
        """Return its router; None if it can't be read."""
        return self._field("router_id") or (self.key.decode(errors="replace") if self.key else None)

    @property
    def request_id(self) -> str | None:
        """Return the id of the event's request; None if the event can't be read."""
        return self._field("request_id")

    def _field(self, name: str) -> str | None:
        try:
            found = loads(self.value or b"")[name]
        except (ValueError, LookupError, TypeError):
            return None
        return found if isinstance(found, str) and is_valid(found) else None

    def as_json(self) -> dict[str, object]:
        """Return the dead letter as JSON's types, without the event, which may hold a prompt."""
        return {
            "letter": self.name,
            "at": self.at.isoformat(),
            "topic": self.topic,
            "partition": self.letter.partition,
            "offset": self.letter.offset,
            "reason": self.letter.reason,
            "message": self.letter.message,
            "router_id": self.router_id,
            "request_id": self.request_id,
            "bytes": None if self.value is None else len(self.value),
        }

    def obstacle(self) -> str | None:
        """Return why the event must not be sent again, or None."""
        if self.letter.stage == INGEST:
            return (
                "it is another's payload, which cannot be mapped; `pbstream dlq show LETTER --raw` "
                "prints it: try it with `pbstream convert`, and send it to its door again"
            )
        if self.topic == "routers":
            return (
                "an old declaration may undo a newer one; `pbstream routers apply` declares a "
                "router"
            )
        if self.omitted:
            return "its value was too large to be kept"
        if self.letter.reason == Reason.ORPHAN_COST and self.booked:
            return (
                "its dollars are booked already, as those of an unknown request; again they "
                "would count twice"
            )
        return None

    @property
    def booked(self) -> bool:
        """Tell whether an orphaned bill was booked; a bill in tokens was not, as it has no
        price."""
        try:
            return bool(loads(self.value or b"").get("cost_usd"))
        except (ValueError, AttributeError):
            return False


async def find(
    bus: Bus,
    *,
    router_id: str | None = None,
    reasons: Collection[str] = (),
    topics: Collection[str] = (),
    limit: int,
) -> list[Found]:
    """Return the newest dead letters of these kinds, the newest first, at most `limit`."""
    found: list[Found] = []
    for place in bus.places("dlq", None):
        count = 0
        async for record in bus.backwards("dlq", None, only=place.partition):
            one = _read(bus, record)
            if one is None or (router_id is not None and one.router_id != router_id):
                continue
            if (reasons and one.letter.reason not in reasons) or (
                topics and one.topic not in topics
            ):
                continue
            found.append(one)
            count += 1
            # So many of each partition: the newest ones may all be on one.
            if count == limit:
                break
    return sorted(found, key=lambda one: (one.at, one.partition, one.offset), reverse=True)[:limit]


async def get(bus: Bus, name: str) -> Found:
    """Return the dead letter of this name. Raises Failure: there is none."""
    partition, _, offset = name.partition(":")
    if partition.isdigit() and offset.isdigit() and int(partition) < len(bus.places("dlq", None)):
        record = await bus.at("dlq", int(partition), int(offset))
        one = None if record is None else _read(bus, record)
        if one is not None:
            return one
    raise Failure(
        f"there is no dead letter {name!r}: `pbstream dlq list` shows their names, as 3:1042."
    )


def _read(bus: Bus, record: Record) -> Found | None:
    try:
        letter = DeadLetter.from_headers(record.headers)
    except MalformedEvent:
        return None
    return Found(
        partition=record.partition,
        offset=record.offset,
        at=datetime.fromtimestamp(record.timestamp / 1000, UTC),
        letter=letter,
        topic=bus.name_of(letter.topic),
        key=record.key,
        value=record.value,
        omitted=any(name == VALUE_OMITTED for name, _ in record.headers),
    )


async def retry(bus: Bus, one: Found) -> Placed:
    """Send a refused event to its topic again, byte for byte; return its new place."""
    # The header lets an operator see on the topic which events were sent twice, and on whose
    # decision.
    return await bus.send_again(
        one.topic, one.key, one.value, headers=[(RETRIED, one.name.encode())]
    )
