"""Draw the pictures of `lab/docs/mechanisms.md` from the rows in `lab/docs/pictured.json`.

`python -m benchmarks.pictured [--play NAME …] [--seeds N]`: --play makes a benchmark's rows anew
before, of what its picture shows and nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import product

import click

from benchmarks import drift, frontier, inflight, onboarding, plots, shocks, sparse
from benchmarks.data import extended_folder
from benchmarks.protocol import BUDGETS, MODERATE, TIGHT, prompts
from benchmarks.rows import Job, Row, gather, gather_alike

ROWS = plots.DOCS / "pictured.json"
SEEDS = 4
COMPARED = ("live", "paper", "thompson", "ε-greedy")
EIGHT = tuple(sorted({*BUDGETS, TIGHT}))


def play_frontier(seeds: range) -> list[Row]:
    """Return the rows of the picture, with the yardsticks."""
    jobs = _jobs(seeds, policy=(*COMPARED, "random"), budget=EIGHT, in_flight=(0, 100))
    rows = gather(frontier.one, jobs)
    return rows + [row for budget in EIGHT for row in frontier.yardsticks(budget)]


def play_inflight(seeds: range) -> list[Row]:
    """Return the rows of the picture: delays that are all alike, at the middle budget."""
    jobs = _jobs(
        seeds,
        policy=(*COMPARED, "random"),
        budget=(MODERATE,),
        in_flight=inflight.IN_FLIGHT,
        delay=("fixed",),
    )
    return gather(inflight.one, jobs)


def play_sparse(seeds: range) -> list[Row]:
    """Return the rows of the picture: three budgets, rewards at once."""
    jobs = _jobs(seeds, policy=COMPARED, budget=plots.SPARSE, judged=sparse.JUDGED, in_flight=(0,))
    return gather(sparse.one, jobs)


def play_drift(seeds: range) -> list[Row]:
    """Return the rows of the picture: Mistral earns a level whatever the prompt."""
    jobs = _jobs(
        seeds,
        policy=(*COMPARED, drift.NO_ALARMS),
        budget=(MODERATE,),
        in_flight=(0,),
        model=("mistral",),
        form=("constant",),
        level=drift.LEVELS,
    )
    return gather_alike(
        drift.each, jobs, differ=("model", "form", "level"), extra=("false_alarms",)
    )


def play_onboarding(seeds: range) -> list[Row]:
    """Return the rows of the picture: good newcomers, cheap and dear, at the tight budget."""
    kinds = onboarding.KINDS[:2]
    jobs = _jobs(seeds, policy=COMPARED, budget=(TIGHT,), newcomer=kinds, in_flight=(0,))
    extra = ("adopted", "adopted_after", "share", "final_share")
    return gather_alike(onboarding.each, jobs, differ=("newcomer",), extra=extra)


def play_shocks(seeds: range) -> list[Row]:
    """Return the rows of the picture: every shock at the middle budget, 30 in flight."""
    every = (*shocks.PRICE_SHOCKS, *shocks.OTHERS)
    jobs = _jobs(seeds, policy=("live", "paper"), budget=(MODERATE,), shock=every, in_flight=(30,))
    return gather_alike(shocks.each, jobs, differ=("shock",), extra=("largest_debt", "unseen"))


PLAYED: dict[str, Callable[[range], list[Row]]] = {
    "drift": play_drift,
    "frontier": play_frontier,
    "inflight": play_inflight,
    "onboarding": play_onboarding,
    "shocks": play_shocks,
    "sparse": play_sparse,
}


def _jobs(seeds: range, **values: Iterable[object]) -> list[Job]:
    named = values | {"seed": seeds}
    return [dict(zip(named, combined, strict=True)) for combined in product(*named.values())]


@click.command(help=__doc__)
@click.option("--play", multiple=True, type=click.Choice([*PLAYED, "all"]), help="Benchmarks.")
@click.option("--seeds", type=click.IntRange(2, 20), default=SEEDS, show_default=True)
def main(play: tuple[str, ...], seeds: int) -> None:
    """Play what is asked for, then draw everything."""
    kept = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    for name in PLAYED if "all" in play else play:
        folder = extended_folder() if name == "onboarding" else None
        for split in ("val", "test"):
            prompts(split, folder)  # encoded once, before processes begin
        kept[name] = [_short(row) for row in PLAYED[name](range(seeds))]
        ROWS.write_text(told(kept), encoding="utf-8")
    for name, rows in kept.items():
        plots.DRAWN[name](rows)


def told(kept: dict[str, list[Row]]) -> str:
    """Return rows as JSON, one a line."""
    parts = (
        f'"{name}": [\n' + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n]"
        for name, rows in sorted(kept.items())
    )
    return "{" + ",\n".join(parts) + "}\n"


def _short(row: Row) -> Row:
    return {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}


if __name__ == "__main__":
    main()
