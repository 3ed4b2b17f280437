"""Draw random worlds that differ in everything that may differ between users; nothing was tuned on
them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmarks.arena import NEVER, Array, Rows, delays
from benchmarks.elsewhere import drawing
from benchmarks.elsewhere.world import World

DIMENSIONS = (2, 3, 5, 9, 17, 26, 26, 26, 65, 129, 385)
JUDGED = (1.0, 1.0, 1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
IN_FLIGHT = (0.0, 10.0, 30.0, 100.0, 300.0)
OWN = (0.0, 0.01, 0.03, 0.06, 0.12, 0.2)
SHARED = (0.0, 0.05, 0.15)
SHIFTS = ("none", "none", "none", "abrupt", "slow")
WHAT = ("reward", "cost", "mix")
REVEALED = ("rewards", "costs")
LEARNED = 100  # judged requests per model before anything is measured
MEASURED = 1000
TRIES = 200


@dataclass(frozen=True, slots=True)
class Recipe:
    """The traits of a drawn world; `shifts` says how something changes, `what` says what."""

    K: int
    d: int
    sigma: float
    own: float
    shared: float
    curved: bool
    contexts: str
    bills: str
    by_prompt: float
    decades: float
    free: int
    in_flight: float
    delay: Literal["fixed", "exponential"]
    judged: float
    shifts: str
    what: str
    level: float

    @property
    def learning(self) -> int:
        """Return how many requests it takes until every model had its share of judged ones."""
        return int(np.ceil(self.K * LEARNED / self.judged))

    @property
    def n(self) -> int:
        return self.learning * (2 if self.shifts == "abrupt" else 1) + MEASURED

    @property
    def seconds(self) -> float:
        """Return about how long a policy takes to play it: what must be read of (K, d, d) per
        request decides.
        """
        return 1e-6 * self.n * (30.0 + 2.0 * self.K + self.K * self.d**2 * 8.0 / 5e3)


def recipe(number: int, *, seconds: float) -> Recipe:
    """Draw the recipe of a world that is played within so many seconds."""
    rng = np.random.default_rng([15, number])
    for _ in range(TRIES):
        K = round(2.0 ** rng.uniform(1.0, 6.0))
        found = Recipe(
            K=K,
            d=int(rng.choice(DIMENSIONS)),
            sigma=float(np.exp(rng.uniform(np.log(0.05), np.log(0.5)))),
            own=float(rng.choice(OWN)),
            shared=float(rng.choice(SHARED)),
            curved=bool(rng.random() < 0.2),
            contexts=str(rng.choice(drawing.CONTEXTS)),
            bills=str(rng.choice(drawing.BILLS)),
            by_prompt=float(rng.choice((0.0, 0.3, 0.8))),
            decades=float(rng.uniform(0.5, 3.0)),
            free=int(rng.random() < 0.1),
            in_flight=float(rng.choice(IN_FLIGHT)),
            delay="fixed" if rng.choice(2) == 0 else "exponential",
            judged=float(rng.choice(JUDGED)),
            shifts=str(rng.choice(SHIFTS)),
            what=str(rng.choice(WHAT)),
            level=float(rng.uniform(0.0, 1.1)),
        )
        if found.seconds <= seconds:
            return found
    return replace(found, K=2, d=2, judged=1.0)


def drawn(
    number: int, *, seconds: float = 6.0, revealed: Collection[str] = (), seed: int = 1
) -> World:
    """Draw a world by its number.

    Args:
        seed: another one draws other prompts, other noise of rewards and bills, and other delays;
            the models, and what is good at what, stay. The budget is set by what models cost then.
        revealed: of what one answer says all: `rewards` have no noise, `costs` of a model are the
            same for every prompt. What is easier then tells what the doubt of it costs.
    """
    r = recipe(number, seconds=seconds)
    rng = np.random.default_rng([16, number])
    noise = None if seed == 1 else np.random.default_rng([16, number, seed])
    X, tasks, moved = _contexts(r, rng, noise)
    expected = _expected(r, X, moved, rng)
    bills = _bills(r, X, tasks, moved, rng, noise, same="costs" in revealed)
    judged = drawing.anew(lambda any_of: any_of.random(r.n) < r.judged, rng, noise)
    bill_delay = drawing.anew(lambda any_of: delays(r.n, r.in_flight, r.delay, any_of), rng, noise)
    later = r.in_flight * rng.uniform(1.0, 3.0)
    reward_delay = drawing.anew(lambda any_of: delays(r.n, later, r.delay, any_of), rng, noise)
    known = slice(r.n - MEASURED, r.n)
    return World(
        kind="drawn",
        name=f"{number:03d}",
        models=tuple(f"m{k:02d}" for k in range(r.K)),
        prices=bills.prices,
        contexts=X,
        rewards=expected
        if "rewards" in revealed
        else drawing.rewards(expected, r.sigma, noise or rng),
        costs=bills.costs,
        budget=_budget(expected[known], bills.costs[known], r.level),
        bill_delay=bill_delay,
        reward_delay=np.where(judged, reward_delay, NEVER),
        phases={"whole": slice(0, r.n), "learned": known},
        expected=expected,
        input_tokens=bills.input_tokens,
        stationary=r.shifts == "none",
        facts={name: getattr(r, name) for name in Recipe.__slots__},
    )


def _contexts(
    r: Recipe, rng: np.random.Generator, noise: np.random.Generator | None
) -> tuple[Array, Rows, Array]:
    """Return contexts (n, d), tasks (n,), and how far the shift has come at each request, in [0,
    1].
    """
    moved = np.zeros(r.n)
    if r.shifts == "abrupt":
        moved[r.learning :] = 1.0
    elif r.shifts == "slow":
        moved = np.linspace(0.0, 1.0, r.n)
    X, tasks = drawing.contexts(r.n, r.d, r.contexts, rng, noise)
    if r.what == "mix" and r.shifts != "none":
        other = drawing.anew(lambda any_of: any_of.random(r.n), rng, noise) < moved
        X[other, :-1] += X[:, :-1].std(0) * rng.normal(size=r.d - 1)
        tasks = np.where(other, (tasks + 1) % 6, tasks)
    return X, tasks, moved


def _expected(r: Recipe, X: Array, moved: Array, rng: np.random.Generator) -> Array:
    """Return the means of the rewards, shape (n, K)."""
    base = rng.uniform(0.4, 0.75) + rng.normal(0.0, 0.12, r.K)
    values = (
        base
        + r.shared * drawing.effects(X, 1, rng)
        + r.own * drawing.effects(X, r.K, rng, curved=r.curved)
    )
    if r.what == "reward":
        values[:, rng.integers(r.K)] += rng.choice((-1.0, 1.0)) * rng.uniform(0.2, 0.5) * moved
    clipped: Array = np.clip(values, drawing.LEAST, drawing.MOST)
    return clipped


def _bills(
    r: Recipe,
    X: Array,
    tasks: Rows,
    moved: Array,
    rng: np.random.Generator,
    noise: np.random.Generator | None,
    *,
    same: bool,
) -> drawing.Bills:
    listed = drawing.prices(r.K, r.decades, min(r.free, r.K - 1), rng)
    bills = drawing.bills(listed, X, tasks, r.bills, rng, noise, by_prompt=r.by_prompt)
    if same:
        bills.costs[:] = bills.costs.mean(0)
    if r.what == "cost":
        factor = np.log(rng.choice((1.0 / 3.0, 3.0)))
        bills.costs[:, rng.integers(r.K)] *= np.exp(factor * moved)
    return bills


def _budget(expected: Array, costs: Array, level: float) -> float:
    """Return a budget between the cheapest model's cost (level 0) and the best one's (level 1),
    never below the cheapest.

    Where the cheapest is free, the budget begins at a tenth of what the cheapest of the others
    costs; where the best is free as well, it ends at what one in the middle costs.
    """
    mean = costs.mean(0)
    cheapest, paid = float(mean.min()), np.sort(mean[mean > 0.0])
    low = cheapest if cheapest > 0.0 else 0.1 * float(paid[0])
    best = float(mean[expected.mean(0).argmax()])
    high = best if best > 0.0 else float(paid[len(paid) // 2])
    return max(float(low * (max(high, low) / low) ** level), 1.1 * low)
