"""Types of what callers hand to the kernel: arrays, and objects that it reads; and the steps of
plans, which the kernel hands back.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Vector = npt.NDArray[np.float64]
"""64-bit floats, shape (d,) unless stated otherwise."""
Matrix = npt.NDArray[np.float64]
"""64-bit floats, shape (d, d) unless stated otherwise."""
Singles = npt.NDArray[np.float32]
"""32-bit floats."""


class Journal(Protocol):
    """A journal: it collects the names of changed pieces; `jumped`: λ_t must be solved again."""

    pieces: set[str]
    jumped: bool


class Tier(Struct, frozen=True, array_like=True, gc=False):
    """Prices of a call whose input is longer than `input_tokens`, in dollars per million tokens."""

    input_tokens: int
    input_price_per_m: float
    output_price_per_m: float


class Price(Struct, frozen=True, omit_defaults=True, gc=False):
    """List price of a model, in dollars per million tokens.

    `above` are the prices of long inputs, the shortest first. The last one that a call's input is
    longer than holds for all tokens of the call, as providers bill it.
    """

    input_price_per_m: float
    output_price_per_m: float
    above: tuple[Tier, ...] = ()

    @property
    def per_1k(self) -> float:
        """Dollars per 1,000 tokens, input and output weighted alike."""
        return (self.input_price_per_m + self.output_price_per_m) / 2000.0

    def at(self, input_tokens: float) -> Price | Tier:
        """Return the prices of a call with this many input tokens."""
        found: Price | Tier = self
        for tier in self.above:
            if input_tokens <= tier.input_tokens:
                break
            found = tier
        return found

    def cost_usd(self, *, input_tokens: int, output_tokens: int) -> float:
        """Dollars for these tokens."""
        price = self.at(input_tokens) if self.above else self
        return (
            input_tokens * price.input_price_per_m + output_tokens * price.output_price_per_m
        ) / 1e6

    def input_factor(self, input_tokens: float) -> float:
        """Return the price of an input token ÷ its list price, for a call with this much input."""
        if not self.above or self.input_price_per_m <= 0.0:
            return 1.0
        return self.at(input_tokens).input_price_per_m / self.input_price_per_m

    def listed_usd(self, usd: float, input_tokens: float) -> float:
        """Return the dollars that a billed call would have cost at the list price of short inputs.

        Args:
            usd: the bill; input_tokens: number of the call's input tokens.
        """
        price = self.at(input_tokens)
        known = input_tokens * price.input_price_per_m / 1e6
        if usd > known and price.output_price_per_m > 0.0:
            rest = (usd - known) * self.output_price_per_m / price.output_price_per_m
            return rest + input_tokens * self.input_price_per_m / 1e6
        # A cache may have made the input cheaper.
        if price.input_price_per_m > 0.0:
            return usd * self.input_price_per_m / price.input_price_per_m
        return usd

    def row(self) -> list[object]:
        """Return the prices as stored; `above` stands at the end if there is any."""
        if not self.above:
            return [self.input_price_per_m, self.output_price_per_m]
        return [self.input_price_per_m, self.output_price_per_m, self.rows()]

    def rows(self) -> list[list[float]]:
        """Return the prices of long inputs as stored."""
        return [
            [one.input_tokens, one.input_price_per_m, one.output_price_per_m] for one in self.above
        ]


class Guess(Protocol):
    """A guess before the first observation, see `router_state.learning.guess`."""

    @property
    def mean(self) -> float: ...

    @property
    def deviation(self) -> float: ...

    @property
    def noise(self) -> float: ...

    @property
    def features(self) -> float: ...

    @property
    def bias(self) -> float: ...

    @property
    def absolute(self) -> bool: ...


class Step(Struct, gc=False, frozen=True, omit_defaults=True):
    """One call of a plan, and the look at its answer.

    Attributes:
        expected_cost_usd: expected cost of the call; price: price of the model at the decision.
        verify: the verifier that looks at the answer; None: none does.
        accept_at: least verdict with which the answer is returned; None: it is returned whatever
            the verdict.
        fee_usd: dollars of the verdict.
        probability: probability that the call is made, as expected at the decision.
        gap: reward that this answer loses because none before it passed, if all models erred on the
            same prompts.
    """

    model: str
    expected_cost_usd: float
    price: Price
    verify: str | None = None
    accept_at: float | None = None
    fee_usd: float = 0.0
    probability: float = 1.0
    gap: float = 0.0
