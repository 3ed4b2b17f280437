"""`python -m paper NAME|all`: the paper's numbers beside the library's and ours, run
here and now.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.data import MissingData
from benchmarks.report import print_figures
from paper.compare import gather
from paper.data import missing
from paper.experiments import EXPERIMENTS
from paper.page import page
from paper.runner import run
from paper.table import print_rows, tally
from streams.encoder.sentence_encoder import Backend

QUICK_SEEDS = 2
DOCS = Path(__file__).parents[2] / "docs"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*EXPERIMENTS, "all"]), required=True)
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True)
@click.option("--quick", is_flag=True, help=f"{QUICK_SEEDS} seeds, and the encoder of a worker.")
@click.option("--kept", is_flag=True, help="Run nothing: show the seeds that are already on disk.")
@click.option(
    "--encoder",
    type=click.Choice(["sentence-transformers", "onnx", "static"]),
    help="[default: sentence-transformers; with --quick static, which needs no weights]",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Fail where the library, run here, reaches the paper and the paper profile does not.",
)
@click.option(
    "--docs", is_flag=True, help="Write lab/docs/paper.md and its figures; of all experiments."
)
def main(
    names: tuple[str, ...],
    seeds: int,
    quick: bool,
    kept: bool,
    encoder: Backend | None,
    verify: bool,
    docs: bool,
) -> None:
    """Print the paper's numbers beside the reference library's, the paper profile's and the live
    profile's.

    PB_DATA names a folder with more data: a clone of the paper's repository, or a flat folder of
    its files.
    """
    wanted = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    if docs and wanted != list(EXPERIMENTS):
        raise click.UsageError("--docs writes the page of all experiments: run `all`.")
    for line in missing():
        if line.partition(":")[0] in wanted:
            click.echo(line, err=True)
    seeds = QUICK_SEEDS if quick else seeds
    encoder = encoder or ("static" if quick else "sentence-transformers")
    try:
        sheets = run(wanted, seeds, encoder, kept_only=kept)
    except MissingData as told:
        raise click.ClickException(str(told)) from told
    results = {name: gather(name, found) for name, found in sheets.items()}
    for name, rows in results.items():
        print_rows(name, rows, len(sheets[name]))
    if docs:
        from paper.figures import draw

        counts = {name: len(found) for name, found in sheets.items()}
        (DOCS / "paper.md").write_text(
            page(results, draw(sheets, results, DOCS), seeds=counts, encoder=encoder),
            encoding="utf-8",
        )
        click.echo(f"Written: {DOCS / 'paper.md'}")
    every = [row for rows in results.values() for row in rows]
    print_figures("paper", {name: float(value) for name, value in tally(every).items()})
    faults = [f"{row.experiment} {row.name}" for row in every if row.ours_to_explain]
    if verify and faults:
        raise click.ClickException(
            f"the library reaches the paper, the paper profile does not: {'; '.join(faults)}"
        )


if __name__ == "__main__":
    sys.exit(main())
