"""Measure how long a ramp takes, how often it falls back for nothing, and how soon it stops a loss:

    python -m benchmarks.ramps --worlds 100

A world draws how rewards scatter (a coin, or grades), which share of the requests is labelled, and
how the incumbent's quality drifts. The router earns so much more than the incumbent at each moment,
the same for all worlds of a row. Every label goes to the guard of a ramp, as a worker's does.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.report import print_table
from router_state.incumbents.ramp_guard import BACK, Guard

RAMP = (0.01, 0.1, 0.5, 1.0)
HOLDOUT = 0.02
MARGINS = (0.0, 0.02)
GAINS = (0.05, 0.02, 0.01, 0.0, -0.03, -0.05)
"""Reward that the router earns beyond the incumbent; one below −margin is a loss to be stopped."""
RATES = (1, 10, 100)
"""Requests a minute."""
MOST_LABELS = 400_000
"""Labels after which a world ends."""


@dataclass(frozen=True, slots=True)
class World:
    """The rewards of a world: their scatter, the share of requests with a label, the drift."""

    coin: bool
    labelled: float
    drift: float


class Ridden(NamedTuple):
    """The end of a ramp.

    Attributes:
        through, fell: requests until the last share was in force, and until it first fell back;
            None: it did not.
        lost: reward that the router cost until then, summed over what it answered.
    """

    through: int | None
    fell: int | None
    lost: float


def drawn(rng: np.random.Generator) -> World:
    """Draw a world."""
    labelled = float(rng.choice([1.0, 0.3, 0.1]))
    return World(bool(rng.random() < 0.5), labelled, float(rng.uniform(-0.1, 0.1)))


def ride(world: World, gain: float, margin: float, rng: np.random.Generator) -> Ridden:
    """Play a ramp until it is through or falls back."""
    step, guard = 0, Guard()
    share = min(RAMP[0], 1.0 - HOLDOUT)
    lost, block = 0.0, 10_000
    for begin in range(0, MOST_LABELS, block):
        draws, noise = rng.random(block), rng.random(block)
        grades = np.clip(rng.normal(0.0, 0.15, block), -0.4, 0.4)
        base = 0.75 + world.drift * np.sin(2.0 * np.pi * (begin + np.arange(block)) / MOST_LABELS)
        for i in range(block):
            routed = bool(draws[i] < share)
            mean = base[i] + (gain if routed else 0.0)
            reward = float(noise[i] < mean) if world.coin else float(mean + grades[i])
            lost -= gain * routed
            guard.judged(reward, routed=routed, share=share)
            found = guard.leads_to(guard.interval(), margin, None)
            if found is None:
                continue
            requests = round((begin + i + 1) / world.labelled)
            if found == BACK:
                return Ridden(None, requests, lost / world.labelled)
            step += 1
            if step == len(RAMP) - 1:
                return Ridden(requests, None, lost / world.labelled)
            share, guard = min(RAMP[step], 1.0 - HOLDOUT), Guard()
    return Ridden(None, None, lost / world.labelled)


def row(margin: float, gain: float, worlds: int, first: int) -> list[str]:
    """Play the worlds of one gain, and return its row of the table."""
    ends: Counter[str] = Counter()
    through: list[int] = []
    fell: list[int] = []
    lost: list[float] = []
    for seed in range(first, first + worlds):
        rng = np.random.default_rng(seed)
        done = ride(drawn(rng), gain, margin, rng)
        ends["through" if done.through else "fell back" if done.fell else "still on it"] += 1
        through += [done.through] if done.through else []
        fell += [done.fell] if done.fell else []
        lost += [done.lost] if done.fell else []
    hours = [f"{np.median(through) / rate / 60:,.0f}" if through else "–" for rate in RATES]
    stopped = f"{np.median(fell):,.0f}; {max(fell):,}" if fell else "–"
    shares = [f"{ends[name] / worlds:.1%}" for name in ("through", "fell back", "still on it")]
    return [
        f"{margin:g}",
        f"{gain:+.2f}",
        *shares,
        *hours,
        stopped,
        f"{np.median(lost):,.0f}" if fell else "–",
    ]


def main() -> None:
    """Play all gains, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0)
    options = parser.parse_args()
    print_table(
        f"A ramp of {', '.join(f'{share:g}' for share in RAMP)}",
        (
            "margin",
            "gain",
            "through",
            "fell back",
            "still on it",
            *(f"hours at {rate} a minute" for rate in RATES),
            "requests until it fell back: median; most",
            "reward lost until then",
        ),
        [row(margin, gain, options.worlds, options.first) for margin in MARGINS for gain in GAINS],
    )


if __name__ == "__main__":
    main()
