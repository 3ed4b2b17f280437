"""Measure what a router loses whose bills and labels come 1,000 to 5,000 requests late, and whether
it should hold its last λ_t meanwhile, over drawn worlds.

    uv run python -m benchmarks.late_books [--quick]

After 2,000 requests and more all feedback comes so late (`onset`), or falls behind by three
requests each request until it is so late (`starved`); or it comes late from the start (`always`).
`held` solves for no other λ_t while its oldest open bill is more than 300 decisions old.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.arena import NEVER, Array, Episode, play
from benchmarks.elsewhere.drawn import drawn, recipe
from benchmarks.policies import Core, core
from benchmarks.report import command, print_figures, print_table
from router_state.changes import Journal

OLD = 300
FIRST_WORLD = 1_000
SECONDS = 3.0
ON_BUDGET = 0.9, 1.05


JUMPED: Any = Journal.__dict__["jumped"]


class Still(Journal):
    """A journal that lets nothing jump while it is told so."""

    __slots__ = ()
    still: ClassVar[bool] = False

    @property
    def jumped(self) -> bool:
        """Tell whether an input of λ_t has jumped."""
        return bool(JUMPED.__get__(self)) and not Still.still

    @jumped.setter
    def jumped(self, value: bool) -> None:
        JUMPED.__set__(self, value)


class Held(Core):
    """The core that holds λ_t while its books are old."""

    def decide(self, i: int, x: Array) -> tuple[str, float, str]:
        assert self.engine is not None
        state = self.engine.state
        if i > OLD and type(state.journal) is Journal:
            state.journal.__class__ = Still
        oldest = next(iter(state.open_commitments), None)
        Still.still = i > OLD and oldest is not None and i - int(oldest) > OLD
        try:
            return super().decide(i, x)
        finally:
            Still.still = False


DELAYS: dict[str, Callable[[Array, float], Array]] = {
    "onset": lambda since, late: np.where(since >= 0, late, 10.0),
    "starved": lambda since, late: np.clip(10.0 + 3.0 * since, 10.0, late),
    "always": lambda since, late: np.full(len(since), late),
}
"""Delay of each request, by how many come after the onset, and by how late feedback becomes."""


def one(number: int, kind: str) -> dict[str, tuple[float, float]] | None:
    """Return cost ÷ budget and reward after the onset of both; None for a world that takes long."""
    r = recipe(number, seconds=SECONDS)
    if r.d > 26 or r.K > 32:
        return None
    world, rng = drawn(number, seconds=SECONDS), np.random.default_rng([77, number])
    late, onset = float(rng.integers(1_000, 5_001)), 2_000 + 50 * r.K
    n = int(onset + 2.5 * late)
    rows = rng.choice(np.arange(len(world))[world.phases["learned"]], n)
    delay = DELAYS[kind](np.arange(n, dtype=np.float64) - onset, late)
    episode = Episode(
        world.models,
        world.contexts[rows],
        world.rewards[rows],
        world.costs[rows],
        world.episode().declared,
        delay,
        np.where(rng.random(n) < max(r.judged, 0.1), delay, NEVER),
        {},
    )
    found = {}
    for name, policy in (("live", core("live")), ("held", core("live", kind=Held))):
        trace = play(policy(number), episode)
        cost = float(trace.cost[onset:].mean()) / world.budget
        found[name] = cost, float(trace.reward[onset:].mean())
    return found


def run(quick: bool) -> None:
    """Print the table."""
    figures: dict[str, float] = {}
    rows: list[list[str | float]] = []
    numbers = range(FIRST_WORLD, FIRST_WORLD + (10 if quick else 65))
    for kind in DELAYS:
        worlds = [found for number in numbers if (found := one(number, kind)) is not None]
        for name in ("live", "held"):
            cost, reward = np.array([world[name] for world in worlds]).T
            low, high = ON_BUDGET
            within = float(((cost >= low) & (cost <= high)).mean())
            rows.append(
                [kind, name, len(worlds), float(np.median(cost)), within, float(reward.mean())]
            )
            figures[f"{kind}, {name}: worlds on budget"] = within
        gain = np.array([world["held"][1] - world["live"][1] for world in worlds])
        figures[f"{kind}: reward of held − live"] = float(gain.mean())
        figures[f"{kind}: ±"] = 1.96 * float(gain.std(ddof=1)) / len(gain) ** 0.5
    print_table("After the onset", ["", "", "worlds", "cost ÷ budget", "on budget", "reward"], rows)
    print_figures("late_books", figures)


if __name__ == "__main__":
    command(run)()
