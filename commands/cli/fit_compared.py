"""Print what each encoder is worth on one's own prompts (`pbstream fit --compare-encoders`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from doors.console.output import console, table

if TYPE_CHECKING:
    from studies.warm_start.judgements import Reading


def compare(
    judgements: Path, reading: Reading, *, components: int, quiet: bool
) -> list[dict[str, object]]:
    """Compare the encoders on a file of judged prompts; print a table, unless `quiet`, and return
    it for programs.
    """
    from streams.encoder.load import load_sentences
    from studies.warm_start.compare import compare_encoders, within_chance
    from studies.warm_start.judgements import read_judgements

    judged = read_judgements(judgements, reading)
    worths = list(
        compare_encoders(
            judged, lambda backend: load_sentences(backend=backend), components=components
        )
    )
    if not quiet:
        columns = (
            "PB_ENCODER_BACKEND",
            "ms a prompt",
            "reward error",
            "cost error, factor",
            "routing, all budgets",
            "fixed mix",
        )
        shown = table(
            *columns, title=f"Encoders, on {len(judged):,} prompts, each held out in turn"
        )
        for worth in worths:
            if worth.problem is not None:
                shown.add_row(worth.encoder, *["–"] * 5)
                continue
            figures = (worth.reward_error, worth.cost_error, worth.routed, worth.mix)
            shown.add_row(
                worth.encoder,
                f"{worth.ms_per_prompt:.3g}",
                *("–" if one is None else f"{one:.4f}" for one in figures),
            )
        console().print(shown)
        for worth in worths:
            if worth.problem is not None:
                click.echo(f"{worth.encoder} was not asked: {worth.problem}")
        # Without it the first of equals would be taken for the best one.
        chance = within_chance(worths, len(judged))
        if chance is not None:
            click.echo(
                f"Differences of reward under {chance:.3f} may be chance. The first encoder "
                "costs a worker least."
            )
    return [worth.as_json() for worth in worths]
