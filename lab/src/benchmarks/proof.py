"""Count how often the intervals of a proof miss, at any look, over drawn worlds:

    python -m benchmarks.proof --worlds 1000

A world draws its share and hold-out (which change once), how dear and how good both sides are (with
a drift), how bills scatter, and how rare and how late labels are. Somebody looks forty times. A
world is missed if the truth lies outside of the interval at any look. The truth is the mean
difference over the requests whose outcome has come.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.proof.difference import Difference

LOOKS = 40
"""Looks at each world."""


@dataclass(frozen=True, slots=True)
class World:
    """Shares before and after a change, means of both sides, and what comes of requests."""

    requests: int
    shares: tuple[float, float]
    scatter: float
    dearer: float
    better: float
    drift: float
    labelled: float
    lag: float
    session: int


def drawn(rng: np.random.Generator) -> World:
    """Draw a world."""
    holdout = float(rng.choice([0.02, 0.05, 0.1, 0.3]))
    return World(
        int(rng.integers(4_000, 16_000)),
        (float(rng.choice([0.1, 0.3, 0.5])), 1.0 - holdout),
        float(rng.uniform(0.2, 1.2)),
        float(rng.choice([0.0, -0.5, -0.2, 0.3])),
        float(rng.choice([0.0, -0.03, 0.02, 0.05])),
        float(rng.uniform(-0.2, 0.2)),
        float(rng.choice([1.0, 0.3, 0.05])),
        float(rng.choice([0.0, 200.0, 2_000.0])),
        int(rng.choice([1, 1, 5])),
    )


def missed(world: World, rng: np.random.Generator) -> tuple[bool, bool, float, float]:
    """Play a world; return whether costs, and rewards, were missed at any look, and the widths of
    both intervals at the end."""
    n = world.requests
    at = np.arange(n)
    sessions = at // world.session
    share = np.where(at < n // 2, *world.shares)
    # A session is drawn for once, and stays where it is as the share grows.
    routed = rng.random(sessions[-1] + 1)[sessions] < share
    season = 1.0 + world.drift * at / n
    usual = rng.normal(size=sessions[-1] + 1)[sessions]
    means = 1e-3 * season, 1e-3 * season * (1.0 + world.dearer)
    noise = np.exp(world.scatter * (0.6 * usual + 0.8 * rng.normal(size=n)) - world.scatter**2 / 2)
    cost = np.where(routed, means[1], means[0]) * noise
    chance = np.clip(0.7 + 0.2 * world.drift + 0.05 * usual, 0.05, 0.9)
    reward = (rng.random(n) < chance + world.better * routed).astype(float)
    due = at + rng.exponential(world.lag, n) if world.lag else at.astype(float)
    due = np.where(rng.random(n) < world.labelled, due, np.inf)
    looks = np.linspace(0, n, LOOKS + 1)[1:]
    bills = _ever(
        cost, means[1] - means[0], at.astype(float), routed, share, sessions, world, looks
    )
    labels = _ever(reward, np.full(n, world.better), due, routed, share, sessions, world, looks)
    return bills[0], labels[0], bills[1], labels[1]


def _ever(
    outcome: npt.NDArray[Any],
    truth: npt.NDArray[Any],
    due: npt.NDArray[Any],
    routed: npt.NDArray[Any],
    share: npt.NDArray[Any],
    sessions: npt.NDArray[Any],
    world: World,
    looks: npt.NDArray[Any],
) -> tuple[bool, float]:
    """Tell whether the truth was outside at any look, and the last interval's width."""
    difference, ever, true, width = Difference(), False, 0.0, float("nan")
    order, n, look = np.argsort(due, kind="stable"), 0, 0
    for i in [*order[np.isfinite(due[order])].tolist(), None]:
        while look < len(looks) and (i is None or due[i] > looks[look]):
            look += 1
            shown = difference.shown()
            if shown.low is not None and shown.high is not None:
                ever |= not shown.low <= true / n <= shown.high
                width = shown.high - shown.low
        if i is None or look == len(looks):
            break
        session = f"s{sessions[i]}" if world.session > 1 else None
        difference.add(
            float(outcome[i]), routed=bool(routed[i]), share=float(share[i]), session=session
        )
        n, true = n + 1, true + float(truth[i])
    return ever, width


def main() -> None:
    """Play worlds, and print how many were missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--from", dest="first", type=int, default=0)
    options = parser.parse_args()
    found = []
    for seed in range(options.first, options.first + options.worlds):
        rng = np.random.default_rng(seed)
        found.append(missed(drawn(rng), rng))
    table = np.array(found, dtype=float)
    shown = np.isfinite(table[:, 2:])
    for name, k in (("dollars", 0), ("rewards", 1)):
        print(f"{name}: {int(table[:, k].sum())} of {int(shown[:, k].sum())} worlds missed")
    print(f"median width: ${np.nanmedian(table[:, 2]):.6f}, {np.nanmedian(table[:, 3]):.4f}")


if __name__ == "__main__":
    main()
