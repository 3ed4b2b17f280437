"""The capability of long inputs: what a call is expected to cost where its input is so long that
other prices hold for all of it (`Price.above`).

Bills are learned at the list price (`Price.listed_usd`), so nothing has to be learned anew where an
input is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Annotated, Any, Protocol

import orjson
from msgspec import Meta

from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix, Price
from router_state.kernel import PRICES, WINDOW, CostModel
from router_state.packing.framing import Json, decoded

PIECE = "\x1flong"
"""Name of the piece of state, which exists while the window has a request with a long input."""
Slots = dict[Annotated[int, Meta(ge=0, lt=WINDOW)], Annotated[int, Meta(ge=0)]]


class OnWire(Protocol):
    """A router's declaration; each of `models` may have prices of long inputs."""

    models: Mapping[str, Any]


class LongInputs(Capability):
    """The long inputs of a router.

    Attributes:
        shortest: tokens above which the prices of some model change.
        lengths: input tokens of the window's requests with longer inputs, by slot.
    """

    __slots__ = ("lengths", "shortest")
    name = "price_above"
    declaration = int

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.shortest = inf
        self.lengths: dict[int, int] = {}

    @classmethod
    def read(cls, wire: OnWire) -> int | None:
        """See Capability. Declared is only the length above which some model has another price; the
        prices stand in the models."""
        tiers = [model.price_above[0] for model in wire.models.values() if model.price_above]
        return min((tier.input_tokens for tier in tiers), default=None)

    def declare(self, declared: int, *, now: float) -> None:
        """See Capability."""
        self.shortest = declared
        gone = [slot for slot, tokens in self.lengths.items() if tokens <= declared]
        for slot in gone:
            del self.lengths[slot]
        if gone:
            self.journal.pieces.add(PIECE)

    def expect(self, choice: Choice) -> None:
        """See Capability."""
        tokens = choice.request.input_tokens
        if tokens is None or tokens <= self.shortest:
            return
        costs, arms = choice.seen.expected_cost_usd, self.arms
        choice.seen.expected_cost_usd = [
            self._usd(arm.costs, arm.price, usd, tokens)
            for arm, usd in zip(arms, costs, strict=True)
        ]

    def _usd(self, model: CostModel, price: Price, usd: float, tokens: int) -> float:
        """Return the dollars of a call which would cost `usd` at the list price."""
        tier = price.at(tokens)
        if tier is price or model.free:
            return usd
        if not self.arms.tokens.in_use or price.output_price_per_m <= 0.0:
            # How much of the cost is the input's is not known.
            both = tier.input_price_per_m + tier.output_price_per_m
            return usd * both / 2000.0 / price.per_1k
        into = model.paid * model.input_share * tokens / 1e6
        rest = max(usd - into * price.input_price_per_m, 0.0)
        dearer = tier.output_price_per_m / price.output_price_per_m
        return rest * dearer + into * tier.input_price_per_m

    @property
    def slots(self) -> Iterable[int]:
        """See Capability."""
        return self.lengths

    def placed(self, slot: int, choice: Choice) -> None:
        """See Capability."""
        tokens = choice.request.input_tokens
        if tokens is not None and tokens > self.shortest:
            self.lengths[slot] = tokens
        elif self.lengths.pop(slot, None) is None:
            return
        self.journal.pieces.add(PIECE)

    def expect_window(self, costs: Matrix) -> None:
        """See Capability."""
        for slot, tokens in self.lengths.items():
            # Dollars are multiplied by the request's own price of a dollar.
            weight = PRICES.item(slot)
            for k, arm in enumerate(self.arms):
                if arm.price.above and weight > 0.0:
                    usd = float(costs[slot, k]) / weight
                    costs[slot, k] = weight * self._usd(arm.costs, arm.price, usd, tokens)

    def begin_window(self) -> None:
        """See Capability."""
        if self.lengths:
            self.lengths = {}
            self.journal.pieces.add(PIECE)

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return (PIECE,) if self.lengths else ()

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece != PIECE or not self.lengths:
            return None
        return orjson.dumps(self.lengths, option=orjson.OPT_NON_STR_KEYS)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(PIECE):
            self.lengths = decoded(kept, Slots, "long inputs")

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not all(tokens > self.shortest for tokens in self.lengths.values()):
            yield "long inputs of the window"
