"""Whether a model's prompts of late are of a kind that it has hardly had before.

How far a prompt is from those before it is its leverage xᵀVx; over that of the bias, which falls
with the number of observations as well, it stays the same while the mix of prompts does.
"""

from __future__ import annotations

from dataclasses import dataclass

MEMORY, LATELY = 400.0, 8.0
"""Prompts over which the usual distance is taken, and prompts that count as recent."""
NOVEL = 1.25
"""Deviations by which the recent distance must exceed the usual one: five of its own."""
CUT_AT = 3.0
"""Deviations at which one prompt is cut: few of a new kind are not yet usual."""
LEAST_DEVIATION = 1e-3
"""Least deviation of the distance, where all prompts are alike; in leverages of the bias."""


@dataclass(slots=True)
class Novelty:
    """The distances of a model's prompts, in leverages of the bias.

    Attributes:
        mean, deviation: of the usual distance; count: prompts behind them.
        lately: mean distance of the last few prompts.
    """

    mean: float = 0.0
    deviation: float = 1.0
    count: float = 0.0
    lately: float = 0.0

    @property
    def novel(self) -> bool:
        """Whether the prompts of late are not the usual ones."""
        return self.lately > self.mean + NOVEL * self.deviation

    def observe(self, distance: float) -> None:
        """Take a prompt in."""
        self.count = count = self.count + 1.0 if self.count < MEMORY else MEMORY
        self.lately += (distance - self.lately) / (LATELY if count > LATELY else count)
        away, deviation = distance - self.mean, self.deviation
        # The first few are all there is to say what is usual: they count as they are.
        if count > LATELY:
            most = CUT_AT * deviation
            away = most if away > most else -most if away < -most else away
        self.mean += away / count
        variance = deviation * deviation
        variance += (away * away - variance) / count
        self.deviation = variance**0.5 if variance > LEAST_DEVIATION**2 else LEAST_DEVIATION
