"""Measure judges that are biased, in the engine: what sources find, and whether correction pays.

    python -m benchmarks.sources            # 30 seeds
    python -m benchmarks.sources --quick    # 8 seeds

Worlds are drawn: five models, six dimensions, no budget. All requests are judged, a share of them
is labelled by people, and labels come 100 requests late. Three ways to learn are paired by seed.
`ranks` is what the service does, and `gold` takes people's labels alone. `offset` subtracts the
judge's offset on the model, from pairs, shrunk towards the mean offset of all models.
The offset is estimated anew each time the number of pairs has doubled, and all remembered
labels of the judge are revised then, so what was learned before is corrected, too.

Detection plays no router: pairs of one model, to the alert.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.played import Played
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.events import Judged
from router_state.profiles import knobs_for
from router_state.sources.pair_sums import PARTS
from router_state.sources.parting import FALSE, Cell

Array = npt.NDArray[np.float64]
K, D, REQUESTS, DELAY = 5, 6, 2000, 100
"""Models, dimensions, requests of a run, and after how many requests a label comes."""
FIRST_SEED = 900
"""Seeds from here on: the prototype and its prior widths were chosen on lower ones."""
NOISE, SCATTER = 0.15, 0.03
"""Deviations of a pair's difference, and of offsets between models, as the prototype has them."""
ATTACKS = ("honest", "self-preference", "noise", "compressed", "inverted", "binary", "drift")
METHODS = ("ranks", "gold", "offset")


class World(NamedTuple):
    """Contexts (n, d), gold rewards (n, K) and the judge's labels (n, K)."""

    x: Array
    gold: Array
    judge: Array


def world(seed: int, attack: str) -> World:
    """Draw a world with an attack on its judge."""
    numbers = np.random.default_rng(seed)
    x = 0.7 * numbers.standard_normal((REQUESTS, D))
    x[:, -1] = 1.0
    theta = 0.04 * numbers.standard_normal((K, D))
    theta[:, -1] = 0.6 + 0.07 * numbers.standard_normal(K)
    gold = np.clip(x @ theta.T + 0.15 * numbers.standard_normal((REQUESTS, K)), 0.0, 1.0)
    judge = gold + 0.12 * numbers.standard_normal(gold.shape)
    second = int(gold.mean(0).argsort()[-2])
    if attack == "self-preference":
        judge[:, second] += 0.2
    elif attack == "noise":
        judge = 0.6 + 0.25 * numbers.standard_normal(gold.shape)
    elif attack == "compressed":
        judge = 0.45 + 0.35 * judge
    elif attack == "inverted":
        judge = np.where(x[:, :1] > 0.47, 1.2 - judge, judge)
    elif attack == "binary":
        judge = (judge > 0.6).astype(float)
    elif attack == "drift":
        judge[REQUESTS // 2 :, second] += 0.3
    return World(x, gold, np.clip(judge, 0.0, 1.0))


class Offsets:
    """Offsets of a judge by model, from pairs, shrunk towards their mean."""

    def __init__(self) -> None:
        self.n, self.d, self.due = np.zeros(K), np.zeros(K), 4.0
        self.of = np.zeros(K)

    def add(self, k: int, difference: float) -> bool:
        """Add a pair; tell whether offsets are estimated anew."""
        self.n[k] += 1.0
        self.d[k] += difference
        if self.n.sum() < self.due:
            return False
        self.due *= 2.0
        shrunk = (NOISE / SCATTER) ** 2
        weights = self.n / (self.n + shrunk)
        means = self.d / np.maximum(self.n, 1.0)
        center = float((weights * means).sum() / max(weights.sum(), 1e-9))
        self.of = center + weights * (means - center)
        return True


def play(one: World, method: str, share: float, seed: int) -> float:
    """Return the mean gold reward of the decisions of a run."""
    numbers = np.random.default_rng(seed + 10_000)
    asked = numbers.random(REQUESTS) < share
    price = Price(1.0, 1.0)
    models = {f"m{k}": ModelConfig(price, onboarding_pulls=0) for k in range(K)}
    knobs = knobs_for("live", {"seed": seed})
    engine = Played.start(RouterConfig(models, dimensions=D, knobs=knobs))
    chosen = np.zeros(REQUESTS, np.int64)
    offsets, judged, revision = Offsets(), list[int](), 0
    for t in range(REQUESTS):
        record = engine.decide(f"r{t}", one.x[t], now=float(t))
        chosen[t] = int(record.model[1:])
        i = t - DELAY
        if i < 0:
            continue
        k = int(chosen[i])
        if asked[i]:
            gold = float(one.gold[i, k])
            engine.play(Judged(f"r{i}", gold, "human", 2))
            if method == "offset" and offsets.add(k, float(one.judge[i, k]) - gold):
                revision += 1
                for j in judged:
                    engine.play(_said(one, j, chosen, offsets, revision))
        elif method != "gold":
            engine.play(_said(one, i, chosen, offsets, revision))
            judged.append(i)
    return float(one.gold[np.arange(REQUESTS), chosen].mean())


def _said(one: World, i: int, chosen: npt.NDArray[np.int64], offsets: Offsets, n: int) -> Judged:
    k = int(chosen[i])
    reward = min(max(float(one.judge[i, k]) - float(offsets.of[k]), 0.0), 1.0)
    return Judged(f"r{i}", reward, "judge", 1, revision=n)


def detection(seeds: int) -> Iterator[str]:
    """Yield rows: pairs until a judge that parts by 0.1 is told of, and false alerts."""
    alpha = FALSE / 4  # of one judge and three models
    for spread in (0.08, 0.12, 0.16, 0.2):
        for before in (0, 200):
            pairs = [
                found
                for seed in range(seeds)
                if (found := _until(seed, 0.1, spread, before, 400, alpha)) is not None
            ]
            within = sum(n <= 60 for n in pairs) / seeds
            middle = np.median(pairs) if pairs else float("nan")
            yield (
                f"| {spread} | {before} | {within:.0%} | {middle:.0f} | {len(pairs)} of {seeds} |"
            )


def false_alerts(seeds: int, pairs: int = 3000) -> Iterator[str]:
    """Yield rows: lives with a false alert, of so many pairs of one model each."""
    draws: dict[str, Callable[[np.random.Generator], float]] = {
        "normal 0.12": lambda numbers: float(numbers.normal(0.0, 0.12)),
        "thumbs, one in five differs": lambda numbers: float(
            numbers.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1])
        ),
        "thumbs, one in fifty differs": lambda numbers: float(
            numbers.choice([-1.0, 0.0, 1.0], p=[0.01, 0.98, 0.01])
        ),
    }
    for name, draw in draws.items():
        false = 0
        for seed in range(seeds):
            numbers, cell = np.random.default_rng(FIRST_SEED + seed), Cell.empty(0)
            for _ in range(pairs):
                cell.add(round(PARTS * draw(numbers)), 0)
                if cell.parted(FALSE) is not None:
                    false += 1
                    break
        yield f"| {name} | {false} of {seeds} |"


def _until(
    seed: int, size: float, spread: float, before: int, after: int, alpha: float
) -> int | None:
    numbers, cell = np.random.default_rng(FIRST_SEED + seed), Cell.empty(0)
    for n in range(before + after):
        offset = size if n >= before else 0.0
        cell.add(round(PARTS * (offset + numbers.normal(0.0, spread))), 0)
        if cell.parted(alpha) is not None:
            return n - before + 1 if n >= before else None
    return None


def compared(seeds: int, shares: tuple[float, ...], attacks: tuple[str, ...]) -> Iterator[str]:
    """Yield rows of differences of mean gold rewards, times 1,000, with 95 %."""
    for attack in attacks:
        for share in shares:
            won = np.array(
                [
                    [play(one, method, share, seed) for method in METHODS]
                    for seed in range(FIRST_SEED, FIRST_SEED + seeds)
                    for one in [world(seed, attack)]
                ]
            )
            ranks, gold, offset = won.T
            cells = [_difference(offset - ranks), _difference(offset - gold)]
            cells.append(_difference(gold - ranks))
            yield f"| {attack} | {share:.0%} | " + " | ".join(cells) + " |"


def _difference(d: Array) -> str:
    half = 1.96 * d.std(ddof=1) / len(d) ** 0.5
    return f"{1e3 * d.mean():+.1f} ± {1e3 * half:.1f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--attacks", nargs="*", default=list(ATTACKS))
    parser.add_argument("--shares", nargs="*", type=float, default=[0.02, 0.1])
    given = parser.parse_args()
    seeds = given.seeds or (8 if given.quick else 30)
    print("| spread | pairs before | within 60 | median | found |\n| --- | --- | --- | --- | --- |")
    print("\n".join(detection(100 if given.quick else 400)), flush=True)
    print("\n| differences | lives with a false alert (1 % allowed) |\n| --- | --- |")
    print("\n".join(false_alerts(50 if given.quick else 300)), flush=True)
    print("\n| attack | gold | offset − ranks | offset − gold | gold − ranks |")
    print("| --- | --- | --- | --- | --- |")
    for row in compared(seeds, tuple(given.shares), tuple(given.attacks)):
        print(row, flush=True)


if __name__ == "__main__":
    main()
