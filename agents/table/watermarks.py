"""Keep the last offset of each source topic that a partition's state contains."""

from __future__ import annotations

from collections.abc import Collection

import orjson

from agents.interfaces import Table
from agents.table import keys
from router_state.errors import DamagedState
from router_state.packing.framing import body_of, decoded, frame


class ForeignState(Exception):
    """The state belongs to another service: it contains events of other topics."""

    reason = "foreign_state"
    retriable = False


class Watermarks:
    """The last offset of each source topic that a partition's state contains.

    Attributes:
        offsets: last offsets by the topic's full name. A group's offsets are set when all its
            events of a topic are applied.
        moved: whether the present group has moved an offset.
        unreadable: reason why the stored offsets can't be read; empty: they can. Events that were
            not committed are then applied again, which changes nothing if their request's record
            contains them.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self.index()

    def index(self) -> None:
        """Read the offsets from the table."""
        self.offsets: dict[str, int] = {}
        self.moved = False
        self.unreadable = ""
        try:
            self.offsets = unpack(self._table.get(keys.WATERMARKS))
        except DamagedState as error:
            self.unreadable = str(error)

    def of(self, topic: str) -> int:
        """Return the last contained offset of a topic; −1 before the first."""
        return self.offsets.get(topic, -1)

    def both(self, one: str, other: str) -> tuple[int, int]:
        """Return the last contained offsets of two topics; −1 before the first."""
        return self.offsets.get(one, -1), self.offsets.get(other, -1)

    def is_applied(self, topic: str, offset: int) -> bool:
        """Tell whether the state already contains this source event."""
        return self.of(topic) >= offset

    def advance(self, topic: str, offset: int) -> None:
        """Note, in the group that changes the state, that the state contains all events of a
        source topic up to this offset.
        """
        # After a recovery older events come again, but a watermark never goes back.
        if offset > self.of(topic):
            self.offsets[topic] = offset
            self.moved = True

    def write(self) -> None:
        """Write the offsets into the table."""
        # The offsets are in the same record batch as the state, so an event is contained if and
        # only if its offset is.
        self._table.put(keys.WATERMARKS, frame(orjson.dumps(self.offsets)))
        self.moved = False

    def require_topics(self, topics: Collection[str]) -> None:
        """Raise ForeignState if the state contains events of other topics than these."""
        if foreign := sorted(self.offsets.keys() - set(topics)):
            raise ForeignState(
                f"partition {self._table.number} of the changelog has the state of "
                f"{', '.join(foreign)}: look at PB_APP_ID"
            )


def unpack(kept: bytes | None) -> dict[str, int]:
    """Return the offsets in a record, by topic; none if there is no record. Raises
    DamagedState.
    """
    if kept is None:
        return {}
    return decoded(body_of(kept, "watermarks"), dict[str, int], "watermarks")
