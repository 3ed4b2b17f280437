"""`pbstream encoder`: make the files of a worker's encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress

from commands.cli.suggesting import Suggesting
from doors.console.output import print_json
from doors.console.session import Session, json_option, pass_session

if TYPE_CHECKING:
    from streams.encoder.sentence_encoder import Backend


@click.group(cls=Suggesting)
def encoder() -> None:
    """Make the files that a worker's encoder needs: an exported network, a table of token vectors,
    or a general projection.

    \b
      pbstream encoder export /var/lib/paretobandit/encoder
      PB_ENCODER_PATH=/var/lib/paretobandit/encoder pbstream worker
    """


@encoder.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--weights",
    metavar="NAME|FOLDER",
    help="A sentence-transformers model; default: all-MiniLM-L6-v2.",
)
@json_option
@pass_session
def export(session: Session, folder: Path, weights: str | None, as_json: bool) -> None:
    """Write the int8 encoder into FOLDER, in about 20 s.

    Only this machine needs the extra `reference`; workers do not.
    """
    from streams.encoder.to_onnx import export_encoder

    # stdout is for the folder and the settings, which a script reads.
    with Console(stderr=True).status("Exporting the encoder, about 20 s ..."):
        export_encoder(folder, weights or session.settings.encoder_weights)
    _said(folder, {"PB_ENCODER_PATH": str(folder.absolute())}, as_json=as_json)


@encoder.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--weights",
    metavar="NAME|FOLDER",
    help="A BERT of sentence-transformers; default: all-MiniLM-L6-v2.",
)
@json_option
@pass_session
def distill(session: Session, folder: Path, weights: str | None, as_json: bool) -> None:
    """Write a table of token vectors and a general projection into FOLDER, for workers with
    PB_ENCODER_BACKEND=static.

    Without --weights the shipped table is made again. The command takes seconds and needs the
    weights and safetensors (extra `reference`), but no torch.
    """
    from streams.encoder.distill import distill as make_table

    make_table(folder, weights or session.settings.encoder_weights)
    variables = {"PB_ENCODER_BACKEND": "static", "PB_ENCODER_PATH": str(folder.absolute())}
    _said(folder, variables, as_json=as_json)


@encoder.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@json_option
@pass_session
def general(session: Session, folder: Path, as_json: bool) -> None:
    """Write a general projection of the encoder that the settings name into FOLDER.

    It turns a prompt into 26 numbers when no projection was fitted to your own prompts. It is
    fitted on 1,600 texts drawn from a vocabulary by the frequency of its words, in a minute or two.
    Without settings the command makes the shipped projection of all-MiniLM-L6-v2 again.

    \b
      PB_ENCODER_WEIGHTS=my/model pbstream encoder general my-projection
    """
    from streams.encoder.encoder_by_settings import backend_of, load_sentences
    from streams.encoder.general_projection import TEXTS, fit_general, source_of

    settings = session.settings
    network = backend_of(settings)
    backend: Backend = "onnx" if network == "static" else network
    path = settings.encoder_path if network == "onnx" else None
    sentences = load_sentences(backend=backend, path=path, weights=settings.encoder_weights)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Encoding drawn texts", total=TEXTS)
        fit_general(
            sentences,
            folder,
            source=source_of(settings.encoder_weights, path),
            progress=lambda done: progress.advance(task, done),
        )
    _said(folder, {"PB_PROJECTION_PATH": str(folder.absolute())}, as_json=as_json)


def _said(folder: Path, variables: dict[str, str], *, as_json: bool) -> None:
    """Print what was written, and the variables with which workers use it."""
    size = sum(file.stat().st_size for file in folder.iterdir())
    if as_json:
        print_json({"folder": str(folder), "bytes": size, "settings": variables})
        return
    settings = " ".join(f"{name}={value}" for name, value in variables.items())
    click.echo(f"{folder}: {size / 1e6:.2g} MB. Workers use it with {settings}")
