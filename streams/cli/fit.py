"""`pbstream fit`: contexts and priors from prompts that were judged before."""

from __future__ import annotations

from pathlib import Path

import click

from streams.console.output import console, print_json, table
from streams.console.session import Session, json_option, pass_session


@click.command()
@click.argument("judgements", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--components", type=click.IntRange(1), default=25, show_default=True, help="k; contexts have k + 1 numbers.")
@click.option("--ridge", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="λ_0 of the priors.")
@json_option
@pass_session
def fit(session: Session, judgements: Path, folder: Path, components: int, ridge: float, as_json: bool) -> None:
    """Fit a PCA and warm-up priors from JUDGEMENTS, and write them into FOLDER as arrays and JSON.

    One line per prompt, with what the answers of some models were worth, from 0 to 1:

    \b
      {"prompt": "Why is the sky blue?", "rewards": {"small": 0.7, "large": 0.95}}

    \b
      pbstream fit judged.jsonl fitted/
      PB_PROJECTION_PATH=fitted pbstream worker
      pbstream models add small --input-price 0.1 --output-price 0.1 --prior fitted/
    """
    from streams.encoder.encoder import load_sentences
    from streams.warm_start.fit import fit as fit_priors

    settings = session.settings
    sentences = load_sentences(
        backend="reference" if settings.encoder_backend == "reference" else "onnx",
        path=settings.encoder_path,
        weights=settings.encoder_weights,
    )
    summary = fit_priors(judgements, folder, sentences=sentences, components=components, ridge=ridge)
    if as_json:
        print_json(
            {
                "folder": str(folder.absolute()),
                "prompts": summary.prompts,
                "dimensions": summary.dimensions,
                "kept_variance": summary.kept_variance,
                "rewards": dict(summary.rewards),
                "mean_reward": dict(summary.mean_reward),
            }
        )
        return
    shown = table("model", "judged prompts", "mean reward", title=f"{summary.prompts} prompts, {summary.dimensions} dimensions")
    for model, count in summary.rewards.items():
        shown.add_row(model, f"{count:,}", f"{summary.mean_reward[model]:.3f}")
    console().print(shown)
    click.echo(f"The projection keeps {summary.kept_variance:.0%} of the variance. Next:")
    click.echo(f"  PB_PROJECTION_PATH={folder} pbstream worker")
    click.echo(f"  pbstream models add NAME --input-price USD --output-price USD --prior {folder}")
