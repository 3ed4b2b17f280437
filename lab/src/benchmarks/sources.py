"""Measure judges that are biased, in the engine: what sources find, and whether correction pays.

    python -m benchmarks.sources                      # drawn worlds, 30 seeds
    python -m benchmarks.sources --world nine --data FOLDER
    PB_DATA=FOLDER python -m benchmarks.sources --world judges
    python -m benchmarks.sources --world alerts

All requests are judged, a share of them is labelled by people, and labels come 100 requests late.
Ways to learn are paired by seed, see `source_play.METHODS`. Alerts play no router: pairs of one
model, to the alert.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks import source_worlds
from benchmarks.source_play import FORMS, METHODS, Run
from benchmarks.source_runs import Runs
from benchmarks.source_worlds import ATTACKS, JUDGES, Array, World
from router_state.learning.change_blocks import FALSE
from router_state.sources.pair_sums import PARTS
from router_state.sources.parting import Cell

FIRST_SEED = 1000
"""Seeds from here on: the estimator's priors were chosen on lower ones."""


def compared(
    worlds: dict[str, Callable[[int], World]],
    seeds: int,
    shares: tuple[float, ...],
    methods: tuple[str, ...],
    played: Runs,
) -> Iterator[str]:
    """Yield rows of differences of mean gold rewards, times 1,000, with 95 %."""
    for name, world in worlds.items():
        for share in shares:
            runs: dict[str, list[Run]] = {method: [] for method in methods}
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                one = world(seed)
                for method in methods:
                    runs[method].append(played.play(one, method, share, seed))
            cells = _cells({method: np.array(ones) for method, ones in runs.items()})
            if name == next(iter(worlds)) and share == shares[0]:
                yield "| judge | gold | " + " | ".join(cells) + " |"
                yield "|" + " --- |" * (2 + len(cells))
            yield f"| {name} | {share:.0%} | " + " | ".join(cells.values()) + " |"


def _cells(runs: dict[str, Array]) -> dict[str, str]:
    """Return the cells of a row by the names of their columns.

    Args:
        runs: (seeds, 3) by method, see `Run`.
    """
    found: dict[str, str] = {}
    corrected = [method for method in runs if method not in BASELINES]
    for baseline, name in BASELINES.items():
        for method in corrected if baseline in runs else ():
            found[f"{method} − {name}"] = _difference(runs[method][:, 0] - runs[baseline][:, 0])
    if "on" in runs and "gold" in runs:
        found["late: on − gold alone"] = _difference(runs["on"][:, 1] - runs["gold"][:, 1])
    if "advised" in runs:
        after = runs["advised"][:, 2]
        advised = after[np.isfinite(after)]
        when = f", after {np.median(advised):.0f} pairs" if len(advised) else ""
        found["advised"] = f"{len(advised)} of {len(after)}{when}"
    return found


BASELINES = {"ranks": "ranks", "gold": "gold alone"}
"""Methods that others are compared with, and their names in the tables."""


def _difference(d: Array) -> str:
    d = d[np.isfinite(d)]
    if len(d) < LEAST_RUNS:
        return "–"
    half = 1.96 * d.std(ddof=1) / len(d) ** 0.5
    return f"{1e3 * d.mean():+.1f} ± {1e3 * half:.1f}"


LEAST_RUNS = 8
"""Runs below which no difference is given."""


def alerts(seeds: int) -> Iterator[str]:
    """Yield the tables of alerts."""
    yield "| spread | pairs before | within 60 | median | found |\n| --- | --- | --- | --- | --- |"
    yield from detection(seeds)
    yield "\n| differences | lives with a false alert (1 % allowed) |\n| --- | --- |"
    yield from false_alerts(seeds)


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


def worlds_of(name: str, attacks: list[str], folder: Path) -> dict[str, Callable[[int], World]]:
    """Return worlds by the name of their row, each drawn by a seed."""
    if name == "judges":
        return {
            f"gold {gold}, judge {judge}": partial(source_worlds.of_judges, gold=gold, judge=judge)
            for gold, judge in permutations(JUDGES, 2)
        }
    draw = partial(source_worlds.nine, folder) if name == "nine" else source_worlds.drawn
    return {attack: partial(draw, attack=attack) for attack in attacks}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=["drawn", "nine", "judges", "alerts"], default="drawn")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--attacks", nargs="*", default=list(ATTACKS))
    parser.add_argument("--shares", nargs="*", type=float, default=[0.0, 0.01, 0.02, 0.05, 0.1])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--kept", type=Path, help="file that keeps the runs of this commit")
    parser.add_argument("--forms", action="store_true", help="other forms of correction")
    given = parser.parse_args()
    methods = ("ranks", "offset", *FORMS) if given.forms else tuple(given.methods)
    if given.world == "alerts":
        rows = alerts(given.seeds)
    else:
        worlds = worlds_of(given.world, given.attacks, given.data)
        played = Runs(given.kept)
        rows = compared(worlds, given.seeds, tuple(given.shares), methods, played)
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()
