"""A model that few bills are known of: a change of its price is found, whatever was guessed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Price
from router_state.kernel import estimate

KNOWN = 25


@dataclass
class Cold:
    """One to five models of a drawn world: levels, effects of prompts, noise, dimensions."""

    seed: int
    arms: Arms = field(init=False)

    def __post_init__(self) -> None:
        self.rng = rng = np.random.default_rng(self.seed)
        K, d = int(rng.integers(1, 6)), int(rng.choice([3, 9, 26]))
        self.noise = float(rng.choice([0.0, 0.1, 0.3, 0.6]))
        self.level = rng.normal(-0.65, 1.2, K)
        self.effects = rng.normal(size=(K, d - 1)) * rng.choice([0.0, 0.3, 0.6]) / math.sqrt(d - 1)
        # The prompts of one application may be much alike.
        self.center = rng.normal(size=d - 1) * rng.choice([0.0, 0.3])
        self.width = float(rng.choice([0.1, 1.0]))
        self.arms = Arms(d, Journal())
        for k in range(K):
            self.arms.add(
                f"m{k}", price=Price(1.0, 1.0), A=np.eye(d), b=np.zeros(d), now_t=0, pulls=0
            )

    def bill(self, k: int, factor: float = 1.0) -> bool:
        """Let a model learn a bill so many times as high; tell whether it raises an alert."""
        features = self.center + self.width * self.rng.normal(size=self.arms.d - 1)
        logarithm = self.level[k] + self.effects[k] @ features + self.noise * self.rng.normal()
        alert = self.arms[k].costs.observe(
            factor * math.exp(logarithm),
            np.append(features, 1.0),
            known=0.0,
            now=0.0,
        )
        if self.arms.bills.due:
            estimate(self.arms.bills, self.arms.priced)
        return alert is not None

    def early(self, times: int = KNOWN) -> int:
        """Return how many alerts so many bills of each model raise."""
        return sum(self.bill(k) for _ in range(times) for k in range(len(self.arms)))

    def found_after(self, factor: float, most: int) -> int | None:
        """Return after how many bills of its new price the first model's alert comes."""
        self.early()
        return next((n for n in range(1, most + 1) if self.bill(0, factor)), None)


@pytest.mark.parametrize(("factor", "missed"), [(4.0, 3), (8.0, 1), (12.0, 1), (0.25, 3)])
def test_another_price_is_found_within_some_tens_of_bills(factor: float, missed: int) -> None:
    found = [Cold(seed).found_after(factor, 50) for seed in range(80)]
    late = [seed for seed, after in enumerate(found) if after is None]
    assert len(late) <= missed, late
    assert float(np.median([after or 50 for after in found])) <= 12.0


def test_bills_as_ever_raise_no_alert() -> None:
    assert sum(Cold(seed).early(400) for seed in range(40)) == 0
