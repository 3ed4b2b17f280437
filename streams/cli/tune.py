"""`pbstream tune`: α, γ and n_eff from a router's own history."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click

from streams.cli.failures import Failure
from streams.cli.output import console, print_json, table
from streams.cli.replay_history import contexts_of, happened, history_of, prior_reader_of
from streams.cli.session import Session, json_option, pass_session, router_option


@click.command()
@click.option(
    "--from", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A JSONL export instead of Kafka."
)
@click.option("--profile", type=click.Choice(["declared", "live", "paper"]), default="declared", show_default=True)
@click.option("--t-adapt", type=click.FloatRange(min=1), default=500.0, show_default=True, help="Requests that outweigh a prior.")
@router_option
@json_option
@pass_session
def tune(session: Session, /, folder: Path | None, profile: str, t_adapt: float, router_id: str, as_json: bool) -> None:
    """Choose α and γ from history: reward as it was, against reward when the most called model fails in the last half.

    Where the requests' metadata has no outcomes, those of models that were not called are modelled; see docs/replay.md.

    \b
      pbstream tune --router acme.chat
      pbstream tune --router acme.chat --from export/ --t-adapt 1000
    """
    from streams.replay.account import Account
    from streams.replay.scenario import BadScenario
    from streams.replay.tune import tune as search

    with ExitStack() as stack:
        history = history_of(session, folder, stack)
        try:
            settings = search(
                happened(history, router_id, Account()),
                contexts=contexts_of(session, stack),
                read_prior=prior_reader_of(session),
                profile=profile,
                t_adapt=t_adapt,
            )
        except BadScenario as error:
            raise Failure(str(error)) from error
    if as_json:
        print_json([asdict(setting) for setting in settings])
        return
    shown = table(
        "alpha", "gamma", "n_eff", "reward", "in failure", "÷ budget", "", title=f"t_adapt {t_adapt:g}, profile {profile}"
    )
    for s in settings:
        ratio = "–" if s.cost_over_budget is None else f"{s.cost_over_budget:.3f}"
        what = "knee" if s.knee else "front" if s.on_front else ""
        shown.add_row(
            f"{s.alpha:g}", f"{s.gamma:g}", f"{s.n_eff:,.0f}", f"{s.reward:.4f}", f"{s.reward_in_failure:.4f}", ratio, what
        )
    console().print(shown)
    knee = next(s for s in settings if s.knee)
    click.echo(f"Declare: alpha {knee.alpha:g}, gamma {knee.gamma:g}, t_adapt {t_adapt:g}.")
