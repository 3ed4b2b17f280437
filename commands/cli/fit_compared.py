"""Print what each encoder is worth on one's own prompts (`pbstream fit --compare-encoders`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from doors.console.output import console, table

if TYPE_CHECKING:
    from streams.settings import Settings
    from studies.warm_start.judgements import Reading


def compare(
    judgements: Path,
    reading: Reading,
    settings: Settings,
    encoder: str | None,
    *,
    components: int,
    quiet: bool,
) -> list[dict[str, object]]:
    """Compare all encoders, and the named one, on a file of judged prompts. Print a table unless
    `quiet`, and return it for programs.
    """
    from streams.encoder.encoder_by_settings import sentences_of
    from streams.encoder.encoder_choice import choose_encoder
    from studies.warm_start.compare_encoders import ENCODERS, compare_encoders, within_chance
    from studies.warm_start.judgements import read_judgements

    judged = read_judgements(judgements, reading)
    # Each encoder is loaded with its own files; the settings' files belong to one of them, which
    # has to be named to be compared.
    named = dict.fromkeys([*ENCODERS, *([] if encoder is None else [encoder])])
    worths = list(
        compare_encoders(
            judged,
            lambda name: sentences_of(choose_encoder(settings, name)),
            encoders=list(named),
            components=components,
        )
    )
    if not quiet:
        columns = (
            "encoder",
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
                click.echo(f"{worth.encoder} was not compared: {worth.problem}")
        # Without this line the first of several equals would look like the best.
        chance = within_chance(worths, len(judged))
        if chance is not None:
            click.echo(
                f"Differences of reward under {chance:.3f} may be chance. The first encoder "
                "costs a worker least."
            )
    return [worth.as_json() for worth in worths]
