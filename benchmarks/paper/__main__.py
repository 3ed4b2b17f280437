"""`python -m benchmarks.paper NAME|all`: the paper's numbers beside ours, run here and now."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.runner import run
from benchmarks.paper.table import FOOTNOTES, Row, gather, page, print_rows
from benchmarks.report import print_figures
from streams.encoder import Backend

QUICK_SEEDS = 2
DOCS = Path(__file__).parents[2] / "docs" / "paper.md"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*EXPERIMENTS, "all"]), required=True)
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True)
@click.option("--quick", is_flag=True, help=f"{QUICK_SEEDS} seeds.")
@click.option("--encoder", type=click.Choice(["reference", "onnx"]), default="reference", show_default=True)
@click.option("--docs", is_flag=True, help="Write docs/paper.md.")
def main(names: tuple[str, ...], seeds: int, quick: bool, encoder: Backend, docs: bool) -> None:
    """Print the paper's numbers beside ours.

    PB_DATA names a folder with the four-model data (models_k4.json, val_k4.jsonl, test_k4.jsonl); without it E4 is left out.
    """
    wanted = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    seeds = QUICK_SEEDS if quick else seeds
    results = {name: gather(name, rows) for name, rows in run(wanted, seeds, encoder).items()}
    for name, rows in results.items():
        print_rows(name, rows, seeds)
    for note in FOOTNOTES:
        click.echo(note)
    if docs:
        DOCS.write_text(page(results, seeds=seeds, encoder=encoder), encoding="utf-8")
        click.echo(f"Written: {DOCS}")
    print_figures("paper", _figures(results))


def _figures(results: dict[str, list[Row]]) -> dict[str, float]:
    compared = [row for rows in results.values() for row in rows if row.inside is not None]
    inside = sum(bool(row.inside) for row in compared)
    return {"numbers_with_interval": len(compared), "inside": inside, "outside": len(compared) - inside}


if __name__ == "__main__":
    main()
