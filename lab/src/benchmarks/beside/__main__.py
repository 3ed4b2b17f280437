"""`python -m benchmarks.beside`: see the help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.beside import page, published, result, running
from benchmarks.beside.entrants import ENTRANTS, OURS
from benchmarks.beside.fields import FIELDS, load
from benchmarks.beside.playing import (
    TRAINED,
    WARM,
    Job,
    choose_settings,
    ends,
    fixed_points,
    mean_points,
    run_all,
)
from benchmarks.elsewhere.real import folder_of
from benchmarks.report import print_figures, print_table

QUICK_SEEDS, SEEDS, TUNING_SEEDS = 2, 20, 4


@click.command()
@click.option("--quick", is_flag=True, help="Two seeds; a few minutes on two cores.")
@click.option(
    "--seeds", type=click.IntRange(2), help="Orders of the prompts; default: 20, quick 2."
)
@click.option(
    "--where", multiple=True, type=click.Choice(tuple(FIELDS)), help="Only these data; repeatable."
)
@click.option(
    "--router",
    "routers",
    multiple=True,
    type=click.Choice((*ENTRANTS, *TRAINED)),
    help="Only `live` and these; repeatable.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with eleven_models.jsonl, for RouterBench; default: PB_DATA or ../shared/data.",
)
@click.option(
    "--write/--no-write", default=None, help="Write lab/docs/beside.md; default: a whole run."
)
def main(
    quick: bool,
    seeds: int | None,
    where: Sequence[str],
    routers: Sequence[str],
    data: Path | None,
    write: bool | None,
) -> None:
    """Play `live` beside other routers: same prompts, same order, same delays.

    Each rival plays with its best setting, chosen on half of the prompts. A curve is drawn over
    budgets, prices of a dollar or weights. Its measures are RouterBench's area (AIQ), and the
    reward of `live` less the rival's at equal dollars, with 95 % intervals over seeds.
    """
    folder, count = folder_of(data), seeds or (QUICK_SEEDS if quick else SEEDS)
    names = list(where or FIELDS)
    if folder is None and "routerbench" in names:
        names.remove("routerbench")
        click.echo("RouterBench is left out: no eleven_models.jsonl (--data, PB_DATA).", err=True)
    if "Vowpal Wabbit" not in ENTRANTS:
        click.echo("Vowpal Wabbit is left out: `make beside` installs it.", err=True)
    drawn, figures, lead = {}, {}, {}
    writes = write if write is not None else not (quick or where or routers or seeds)
    for name in names:
        field = load(name, folder)
        asked = [n for n in (*ENTRANTS, *TRAINED) if n == OURS or not routers or n in routers]
        # Trained routers know the first half only: behind other prompts there is none of these.
        asked = [n for n in asked if not (field.before and n in TRAINED)]
        settings = choose_settings(name, folder, asked, QUICK_SEEDS if quick else TUNING_SEEDS)
        jobs = [Job(name, folder, n, settings[n], seed) for n in asked for seed in range(count)]
        found = run_all(jobs, f"{name}: {count} seeds")
        played = {n: found[j * count : (j + 1) * count] for j, n in enumerate(asked)}
        rows = result.rows(played, settings, tuple(TRAINED), ends(field))
        fixed = fixed_points(field)
        curves = {n: mean_points(played[n], late=False) for n in asked if n not in TRAINED}
        drawn[name] = field, curves, fixed
        lead[field.title] = rows
        _print(field.title, rows, count)
        text = page.table(rows) + "\n\n" + page.points(fixed, curves[OURS])
        if name in ("code", "agentic"):
            online = {n: played[n] for n in asked if n not in TRAINED}
            text += "\n\n" + published.beside(name, online, field, played.get(WARM))
        click.echo(text)
        if writes:
            page.write(name, text)
        late = next(row.late for row in rows if row.entrant == OURS)
        figures[f"{name}_area_last_half"] = late.value
    costs_to_run = running.table() if not where else ""
    click.echo(costs_to_run)
    if writes:
        page.write("orders", f"The tables are of {count} orders of the prompts.")
        page.write("running", costs_to_run)
        page.write("lead", page.lead(lead))
        page.draw({n: drawn[n] for n in drawn if n != "agentic"})
    print_figures("beside", figures)


def _print(title: str, rows: Sequence[result.Row], seeds: int) -> None:
    columns = ("router", "setting", "area", "last half", "live ahead", "last half")
    cells = [
        [
            row.entrant,
            row.setting,
            *(
                "" if e is None else e.told(100.0, signed=at > 1)
                for at, e in enumerate((row.whole, row.late, row.ahead, row.ahead_late))
            ),
        ]
        for row in rows
    ]
    print_table(f"{title}; reward × 100, {seeds} seeds, ± 95 %", columns, cells)


if __name__ == "__main__":
    main()
