"""`pbstream encoder`: the network that a worker runs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from streams.console.session import Session, pass_session


@click.group()
def encoder() -> None:
    """Export the sentence encoder, so that workers need neither torch nor the network.

    \b
      pbstream encoder export /var/lib/paretobandit/encoder
      PB_ENCODER_PATH=/var/lib/paretobandit/encoder pbstream worker
    """


@encoder.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--weights", metavar="NAME|FOLDER", help="A sentence-transformers model; default: all-MiniLM-L6-v2.")
@pass_session
def export(session: Session, folder: Path, weights: str | None) -> None:
    """Write the int8 encoder into FOLDER, in about 20 s; only this machine needs the extra `reference`, workers do not."""
    from streams.encoder.export import export_encoder

    with Console(stderr=True).status("Exporting the encoder, about 20 s ..."):
        export_encoder(folder, weights or session.settings.encoder_weights)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    click.echo(f"{folder}: {size:.0f} MB. Workers use it with PB_ENCODER_PATH={folder.absolute()}")
