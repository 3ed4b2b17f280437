"""`pbstream tune`: choose α, γ and n_eff from a router's own history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from commands.cli.replay_history import (
    WHOLE,
    contexts_of,
    from_option,
    happened,
    history_of,
    no_request,
    prior_reader_of,
)
from doors.console.failures import Failure
from doors.console.output import console, print_json, table
from doors.console.session import Session, json_option, option, pass_session, router_option

if TYPE_CHECKING:
    from studies.history.records import History

T = TypeVar("T")
LEAST_REWARDS = 50
"""Fewest rewards of a comparison: below, chance alone decides which setting looks best."""


@click.command()
@from_option
@click.option(
    "--profile",
    type=click.Choice(["declared", "live", "paper"]),
    default="declared",
    show_default=True,
)
@option(
    "--t-adapt",
    click.FloatRange(min=1),
    500.0,
    "Number of requests after which a prior is outweighed.",
)
@click.option(
    "--priors",
    is_flag=True,
    help="Choose t_adapt instead, by the rewards with the priors and with mismatched ones.",
)
@option("--gamma", click.FloatRange(min=0.9, max=1), 0.997, "With --priors: forgetting factor.")
@router_option
@json_option
@pass_session
def tune(
    session: Session,
    /,
    folder: Path | None,
    profile: str,
    priors: bool,
    router_id: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose exploration α and forgetting γ from history.

    Each pair is judged twice: by the reward on the history as it was, and by the reward if the most
    called model fails in the last half.

    --priors chooses instead how much the router's priors should count, so that they help but do
    little harm where they are wrong.

    Where the requests' metadata has no outcomes, those of models that were not called are modelled;
    see docs/explanation/replay.md.

    \b
      pbstream tune --router acme.chat
      pbstream tune --router acme.chat --from export/ --t-adapt 1000
      pbstream tune --router acme.chat --priors
    """
    with ExitStack() as stack:
        cases = _Cases(session, history_of(session, folder, stack), router_id, stack)
        if priors:
            _tune_priors(cases, profile, options["gamma"], as_json)
        else:
            _tune_knobs(cases, router_id, profile, options["t_adapt"], as_json)
        for line in cases.account.lines():
            click.echo(f"Left out: {line}", err=as_json)


class _Cases:
    """A router's cases on disk, their survey, the account of skipped records, and the reader of its
    priors.
    """

    def __init__(
        self, session: Session, history: History, router_id: str, stack: ExitStack
    ) -> None:
        from studies.history.account import Account
        from studies.simulate.case_file import CaseFile
        from studies.simulate.cases import Cases
        from studies.simulate.scenario import Scenario
        from studies.simulate.study import survey

        self.account = Account()
        read = Cases(
            happened(history, router_id, self.account),
            contexts=contexts_of(session, stack),
            account=self.account,
        )
        self.kept = stack.enter_context(CaseFile())
        self.rewards = 0
        # One pass over the history fills the file; each setting then reads the file.
        self.found = survey(self.kept.keep(self._counted(read)), Scenario())
        self.read_prior = prior_reader_of(session)
        if not self.found.requests:
            raise no_request(history, router_id, WHOLE)
        if self.rewards < LEAST_REWARDS:
            raise Failure(
                f"{self.found.requests:,} requests of router {router_id!r}, {self.rewards:,} "
                "with a reward, can't tell settings "
                f"apart: tune takes {LEAST_REWARDS} rewards at least, and better thousands."
            )

    def _counted(self, cases: Iterable[T]) -> Iterator[T]:
        """Count the rewards that pass by."""
        for case in cases:
            self.rewards += getattr(case, "reward", None) is not None
            yield case


def _tune_knobs(cases: _Cases, router_id: str, profile: str, t_adapt: float, as_json: bool) -> None:
    from studies.simulate.tune import alpha_counts
    from studies.simulate.tune import tune as search

    settings = search(
        cases.kept, cases.found, read_prior=cases.read_prior, profile=profile, t_adapt=t_adapt
    )
    if as_json:
        print_json([asdict(setting) for setting in settings])
        return
    columns = ("alpha", "gamma", "n_eff", "reward", "± to the best", "in failure", "÷ budget", "")
    shown = table(*columns, title=f"t_adapt {t_adapt:g}, profile {profile}")
    for s in settings:
        ratio = "–" if s.cost_over_budget is None else f"{s.cost_over_budget:.3f}"
        what = "knee" if s.knee else "front" if s.on_front else ""
        shown.add_row(
            f"{s.alpha:g}",
            f"{s.gamma:g}",
            f"{s.n_eff:,.0f}",
            f"{s.reward:.4f}",
            "–" if s.doubt is None else f"{s.doubt:.4f}",
            f"{s.reward_in_failure:.4f}",
            ratio,
            what,
        )
    console().print(shown)
    best, knee = max(settings, key=lambda s: s.reward), next(s for s in settings if s.knee)
    # A difference that chance can explain is no reason to change a setting.
    alike = [
        s for s in settings if s is best or s.doubt is None or best.reward - s.reward <= s.doubt
    ]
    click.echo(
        f"{len(alike)} of {len(settings)} settings can't be told from the best in reward, over "
        f"{cases.rewards:,} rewards."
    )
    if len(alike) == len(settings):
        click.echo(
            "This history gives no reason to change anything; the knee only says what would lose "
            "least in a failure."
        )
    explored = f"alpha={knee.alpha:g} "
    if not alpha_counts(settings):
        click.echo("α changes nothing: the router explores by its doubt, and reads no α.")
        explored = ""
    click.echo("The knee in force:")
    click.echo(
        f"  pbstream routers set {router_id} {explored}gamma={knee.gamma:g} t_adapt={t_adapt:g}"
    )


def _tune_priors(cases: _Cases, profile: str, gamma: float, as_json: bool) -> None:
    from studies.simulate.tune_priors import NoPriors, tune_priors

    try:
        weights, without = tune_priors(
            cases.kept, cases.found, profile=profile, gamma=gamma, read_prior=cases.read_prior
        )
    except NoPriors as error:
        raise Failure(str(error)) from error
    if as_json:
        print_json(
            {"weights": [asdict(weight) for weight in weights], "reward_without_priors": without}
        )
        return
    columns = ("t_adapt", "n_eff", "reward", "first fifth", "mismatched: reward", "first fifth")
    shown = table(
        *columns, title=f"gamma {gamma:g}, profile {profile}; without priors {without:.4f}"
    )
    for w in weights:
        rewards = (w.reward, w.early, w.reward_mismatched, w.early_mismatched)
        shown.add_row(f"{w.t_adapt:g}", f"{w.n_eff:,.0f}", *(f"{value:.4f}" for value in rewards))
    console().print(shown)
    # Right and mismatched priors count equally, for users who do not know which theirs are.
    best = max(weights, key=lambda w: w.reward + w.reward_mismatched)
    click.echo(
        f"If the priors may be as wrong as right, declare t_adapt {best.t_adapt:g}; if they are "
        "right, what the table says."
    )
