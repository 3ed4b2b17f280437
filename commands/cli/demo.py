"""`pbstream demo`: see the whole service work."""

from __future__ import annotations

from pathlib import Path

import click

from commands.cli.service import stop_on_sigterm
from doors.console.failures import Failure
from doors.console.output import console, print_json
from doors.console.session import json_option, option

SHOCKS = ("none", "price-cut", "price-rise", "model-failure", "new-model")
"""Names of `commands.demo.shocks.SHOCKS`, which an option cannot import: it needs the data set."""


@click.command()
@click.option(
    "--requests",
    type=click.IntRange(1, 1824),
    help="Number of held-out prompts to play; default: all 1,824.",
)
@option("--shock", click.Choice(SHOCKS), "none", "Change of the world after the first third.")
@option(
    "--in-flight",
    click.IntRange(1, 10_000),
    100,
    "Most requests that wait for their bill at a time.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, 1000, min_open=True),
    help="Budget in dollars per request; default: 3e-4, with --ramp 6.62e-4.",
)
@click.option(
    "--ramp",
    is_flag=True,
    help="Let the router take over from the dearest model step by step, as labels show that it is "
    "good enough.",
)
@option("--profile", click.Choice(["live", "paper"]), "live", "Policy that decides.")
@option("--seed", click.IntRange(min=0), 0, "Seed of the prompts' order and of the delays.")
@click.option(
    "--encoder",
    default="static",
    show_default=True,
    metavar="KIND[:NAME]",
    help="Encoder of the prompts, named as for `pbstream fit`.",
)
@click.option(
    "--keep", is_flag=True, help="Leave broker and worker running afterwards, until Ctrl-C."
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; default: runs/demo-<time>.",
)
@json_option
def demo(
    requests: int | None,
    shock: str,
    in_flight: int,
    budget: float | None,
    ramp: bool,
    profile: str,
    seed: int,
    encoder: str,
    keep: bool,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Play the paper's benchmark through a real worker on a real Kafka broker.

    1,824 judged prompts go through the encoder to three models; each bill comes back when some 30
    more requests have been decided, each reward some 100 later. It ends with a table and a page in
    runs/, and leaves nothing running. With --json the figures are all that stdout gets.

    \b
      pbstream demo
      pbstream demo --requests 300 --shock price-cut
      pbstream demo --shock model-failure --budget 6.62e-4
      pbstream demo --ramp
      pbstream demo --requests 300 --keep
    """
    # The data set of the demo comes with an extra that a worker's image does not have.
    try:
        from commands.demo.ramp import BUDGET_USD as RAMP_BUDGET_USD
        from commands.demo.show import Options, show
    except ModuleNotFoundError as missing:
        raise Failure(
            f"the demo needs {missing.name}: run `make demo` in a clone, or install the extra demo."
        ) from missing
    stop_on_sigterm()
    options = Options(
        requests=requests,
        shock=shock,
        in_flight=in_flight,
        seed=seed,
        profile=profile,
        budget_usd=budget or (RAMP_BUDGET_USD if ramp else 3e-4),
        ramp=ramp,
        encoder=encoder,
        keep=keep,
        folder=folder,
    )
    # With --json what people read goes to stderr, so that stdout is one document.
    report = show(options, out=console(stderr=as_json))
    if as_json:
        print_json(report.figures())
    if report.play.refused:
        raise Failure(
            f"{len(report.play.refused)} requests were refused; pb.dlq had the reasons, "
            "demo.json counts them."
        )
