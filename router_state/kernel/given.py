"""Types of what callers hand to the kernel: arrays, and objects that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True, slots=True)
class Price:
    """List price of a model, in dollars per million tokens."""

    input_price_per_m: float
    output_price_per_m: float

    @property
    def per_1k(self) -> float:
        """Dollars per 1,000 tokens, input and output weighted alike."""
        return (self.input_price_per_m + self.output_price_per_m) / 2000.0

    def cost_usd(self, *, input_tokens: int, output_tokens: int) -> float:
        """Dollars for these tokens."""
        return (
            input_tokens * self.input_price_per_m + output_tokens * self.output_price_per_m
        ) / 1e6


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
