"""The types of the fields in the head of a router."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, structs

from router_state.errors import DamagedState
from router_state.packing.framing import Json, converted, decoded
from router_state.packing.price_rows import PriceRow
from router_state.since import Packed

Count = Annotated[int, Meta(ge=0, le=2**53)]
"""A count, a number of a decision or a clock."""
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]
"""A word of a random generator as hexadecimal digits: 128 bits exceed JSON's integers."""
Counters = tuple[
    Count, Count, Count, Count, Count, float, float, float, float, Count, Count, Count, float
]
"""The books, in the order of `layout.COUNTERS`."""


class Words(NamedTuple):
    """The state of numpy's generator: two words, whether half of a draw is left, and that half."""

    state: Hex
    inc: Hex
    has_uint32: Annotated[int, Meta(ge=0, le=1)]
    uinteger: Annotated[int, Meta(ge=0, le=2**32 - 1)]


class Head(Struct):
    """The head of a router; `others` is the whole head as JSON, from which each capability reads
    its own fields.

    The numbers stand in the order of `layout`.
    """

    counters: Counters
    ema: tuple[float, float] | None
    dual: tuple[float, float, float, float, float, bool, Count, Count] | None
    jumped: bool
    chance: Json
    names: list[str]
    prices: list[PriceRow]
    arms: list[tuple[Count, Count, Count, float | None]]
    since: Packed
    rests: tuple[float, float] = (0.0, 0.0)
    others: Mapping[str, Json] = {}

    @classmethod
    def read(cls, body: bytes) -> Head:
        """Return the head in this body. Raises DamagedState."""
        values = decoded(body, dict[str, Json], "head")
        head = structs.replace(converted(values, cls, "head"), others=values)
        if not len(head.names) == len(set(head.names)) == len(head.prices) == len(head.arms):
            raise DamagedState(f"head: {head.names} are not the names of {len(head.arms)} models")
        return head
