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
from benchmarks.source_play import METHODS, PROMPTS, Run
from benchmarks.source_runs import Runs
from benchmarks.source_worlds import ATTACKS, JUDGES, Array, World
from router_state.sources.pair_sums import PARTS
from router_state.sources.parting import FALSE_A_YEAR, Cell

FIRST_SEED = 2000
"""Seeds from here on, up to 4999: what is estimated was chosen on others."""


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
        runs: (seeds, 2) by method, see `Run`.
    """
    found: dict[str, str] = {}
    corrected = [method for method in runs if method not in BASELINES]
    for baseline, name in BASELINES.items():
        for method in corrected if baseline in runs else ():
            found[f"{method} − {name}"] = _difference(runs[method][:, 0] - runs[baseline][:, 0])
    for method in ("on", PROMPTS):
        if method in runs and "gold" in runs:
            late = runs[method][:, 1] - runs["gold"][:, 1]
            found[f"late: {method} − gold alone"] = _difference(late)
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


def alerts(seeds: int, pairs_a_day: tuple[float, ...]) -> Iterator[str]:
    """Yield the tables of alerts."""
    yield "| spread | pairs before | within 60 | median | found |\n| --- | --- | --- | --- | --- |"
    yield from detection(seeds)
    yield "\n| pairs a day | differences | years with a false alert |\n| --- | --- | --- |"
    for daily in pairs_a_day:
        # As many pairs for each rate: a year of 5,000 a day is a hundred years of 50.
        yield from false_alerts(max(round(seeds * pairs_a_day[0] / daily), 2), daily)


CELLS = 4
"""Cells of a router with one judge and three models: a model has a quarter of the pairs."""


def detection(seeds: int, daily: float = 50.0) -> Iterator[str]:
    """Yield rows: pairs until a judge that parts by 0.1 is told of."""
    for spread in (0.06, 0.08, 0.12, 0.16, 0.2):
        for before in (0, 200):
            pairs = [
                found
                for seed in range(seeds)
                if (found := _until(seed, 0.1, spread, before, daily)) is not None
            ]
            within = sum(n <= 60 for n in pairs) / seeds
            middle = np.median(pairs) if pairs else float("nan")
            yield (
                f"| {spread} | {before} | {within:.0%} | {middle:.0f} | {len(pairs)} of {seeds} |"
            )


def false_alerts(lives: int, daily: float) -> Iterator[str]:
    """Yield rows: years of one model in which a judge is told of that does not part."""
    for name, draw in source_worlds.INNOCENT.items():
        false = 0
        for seed in range(FIRST_SEED, FIRST_SEED + lives):
            pairs = draw(np.random.default_rng(seed), round(365 * daily / CELLS))
            false += _told_after(pairs, daily) is not None
        yield f"| {daily:.0f} | {name} | {false} of {lives} |"


def _told_after(pairs: tuple[Array, Array], daily: float) -> int | None:
    """Return the number of pairs after which a judge is told of."""
    cell = Cell.empty(0)
    for n, (y, r) in enumerate(zip(*pairs, strict=True)):
        cell.add(round(PARTS * float(y)), round(PARTS * float(r)), n * CELLS / daily * DAY)
        if cell.parted(FALSE_A_YEAR / CELLS) is not None:
            return n + 1
    return None


DAY = 86_400.0
"""Seconds of a day."""


def _until(seed: int, size: float, spread: float, before: int, daily: float) -> int | None:
    numbers, after = np.random.default_rng(FIRST_SEED + seed), 400
    differences = numbers.normal(0.0, spread, before + after)
    differences[before:] += size
    found = _told_after(source_worlds.beside(numbers, differences), daily)
    return None if found is None or found <= before else found - before


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
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=(*METHODS, PROMPTS))
    parser.add_argument("--daily", nargs="*", type=float, default=[50.0, 500.0, 5000.0])
    parser.add_argument("--kept", type=Path, help="file that keeps the runs of this commit")
    given = parser.parse_args()
    if given.world == "alerts":
        rows = alerts(given.seeds, tuple(given.daily))
    else:
        worlds = worlds_of(given.world, given.attacks, given.data)
        played = Runs(given.kept)
        rows = compared(worlds, given.seeds, tuple(given.shares), tuple(given.methods), played)
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()
