"""`pbstream cost` and `pbstream reward`: what a request cost, and how good its answer was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar, get_args

import click
from pydantic import ValidationError

from commands.reports import Report, report
from doors.console.output import print_json
from doors.console.session import (
    Session,
    answered,
    named,
    run,
)
from drawing.numbers import dual, dual_in_words, usd
from schemas import CostReported, RewardObserved
from schemas.costs import MAX_MILLISECONDS, Status
from schemas.sentences import what_is_wrong
from schemas.verifiers import MAX_ATTEMPT

SENTENCES = {
    "booked": "Booked.",
    "duplicate": "It was booked before: this one changes nothing "
    "(a higher --revision replaces a {what}).",
    "waiting": (
        "Its request is not known (yet). The {what} waits for it for PB_ORPHAN_WAIT seconds "
        "(default: 60); then it is refused as {orphan}. Check the id, and name the router with "
        "--router."
    ),
    "taken_in": (
        "A worker has taken it in; whether it changed anything, `pbstream explain "
        "{request}{router}` shows."
    ),
}
"""Sentence about an event, by its outcome; the other outcomes are failures."""
E = TypeVar("E", CostReported, RewardObserved)
attempt_option = click.option(
    "--attempt",
    type=click.IntRange(0, MAX_ATTEMPT),
    metavar="N",
    help="Which call of the request's plan it is of, from 0; default: the first.",
)
revision_option = click.option(
    "--revision",
    type=click.IntRange(min=0),
    default=0,
    help="Number of the correction; a higher one (of a label: of the same source) replaces a "
    "lower one.",
)


@click.command()
@click.argument("request_id")
@click.argument("cost_usd", type=click.FloatRange(min=0, max=1000), required=False)
@click.option(
    "--input-tokens",
    type=click.IntRange(min=0),
    help="Input tokens instead of dollars, priced as at the decision.",
)
@click.option(
    "--output-tokens",
    type=click.IntRange(min=0),
    help="Output tokens instead of dollars, priced as at the decision.",
)
@click.option(
    "--cached-tokens",
    type=click.IntRange(min=0),
    help="Those of the input tokens that were read from the model's cache.",
)
@click.option(
    "--status",
    type=click.Choice(get_args(Status)),
    help="How the call ended; default: with an answer.",
)
@click.option(
    "--answered-by",
    metavar="MODEL",
    help="Which model answered, as the provider says; default: the called one.",
)
@click.option(
    "--latency",
    "latency_ms",
    type=click.FloatRange(0, MAX_MILLISECONDS),
    metavar="MS",
    help="Milliseconds from the call to the end of the answer.",
)
@attempt_option
@revision_option
@answered
def cost(
    session: Session,
    request_id: str,
    cost_usd: float | None,
    input_tokens: int | None,
    output_tokens: int | None,
    cached_tokens: int | None,
    status: Status | None,
    answered_by: str | None,
    latency_ms: float | None,
    attempt: int | None,
    revision: int,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Report what a request really cost, in dollars or in tokens, and wait until it is booked.

    \b
      pbstream cost 4f1c22a90b13 0.00031
      pbstream cost 4f1c22a90b13 --input-tokens 68 --output-tokens 412
      pbstream cost 4f1c22a90b13 0.00029 --revision 1
      pbstream cost 4f1c22a90b13 0 --status timeout --latency 30000
      pbstream cost 4f1c22a90b13 0.0004 --answered-by gpt-x-2
      pbstream cost 4f1c22a90b13 0.004 --attempt 1
    """
    if cost_usd is None and (input_tokens is None or output_tokens is None):
        raise click.UsageError("give dollars, or both of --input-tokens and --output-tokens.")
    if cached_tokens is not None and input_tokens is not None and cached_tokens > input_tokens:
        raise click.UsageError("--cached-tokens are some of --input-tokens: give fewer.")
    event = event_of(
        CostReported,
        router_id=router_id,
        request_id=request_id,
        cost_usd=cost_usd,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_input_tokens=cached_tokens,
        status=status,
        answered_by=answered_by,
        latency_ms=latency_ms,
        attempt=attempt,
        revision=revision,
    )
    tell(run(report(session.settings, "costs", event, seconds=timeout)), "bill", as_json)


class Quality(click.ParamType):
    """A reward from 0 to 1, or `none`, which withdraws an earlier one."""

    name = "reward"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        if value == WITHDRAWN:
            return WITHDRAWN
        return float(click.FloatRange(min=0, max=1).convert(value, param, ctx))


WITHDRAWN = "none"
"""Stands in place of a reward that is withdrawn."""


@click.command()
@click.argument("request_id")
@click.argument("reward", type=Quality())
@click.option(
    "--source",
    default="human",
    show_default=True,
    help="Source of the label: human, judge, user, metric, or any name.",
)
@click.option(
    "--session",
    "of_session",
    is_flag=True,
    help="REQUEST_ID names a session: each of its requests gets the reward that has none.",
)
@click.option(
    "--attempt",
    type=click.IntRange(0, MAX_ATTEMPT),
    metavar="N",
    help="Which call of the request's plan gave the answer, from 0; default: the last one.",
)
@revision_option
@answered
def reward(
    session: Session,
    request_id: str,
    reward: float | str,
    source: str,
    attempt: int | None,
    revision: int,
    of_session: bool,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Report how good the answer to a request was, from 0 to 1, and wait until it is booked; days
    later is fine.

    \b
      pbstream reward 4f1c22a90b13 0.85 --source judge
      pbstream reward talk-17 1 --session --source user
      pbstream reward 4f1c22a90b13 none --source judge --revision 1
    """
    event = event_of(
        RewardObserved,
        router_id=router_id,
        request_id=None if of_session else request_id,
        session_id=request_id if of_session else None,
        reward=None if reward == WITHDRAWN else reward,
        source=source,
        attempt=attempt,
        revision=revision,
        # By this machine's clock: a label is judged now, whenever its request was.
        observed_at=datetime.now(UTC),
    )
    tell(run(report(session.settings, "rewards", event, seconds=timeout)), "reward", as_json)


def tell(found: Report, what: str, as_json: bool) -> None:
    """Print what became of an event; exit with code 1 if it was refused or no worker took it in."""
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(
            f"Sent to {found.placed.topic}, partition {found.placed.partition}, offset "
            f"{found.placed.offset}."
        )
    if found.failure is not None:
        if as_json:
            raise click.exceptions.Exit(1)
        raise found.failure
    state = found.state
    if as_json or state is None:
        return
    # The reason under which it would be found among the dead letters.
    orphan = "orphan_cost" if what == "bill" else "orphan_reward"
    click.echo(
        SENTENCES[found.outcome].format(
            what=what, orphan=orphan, request=found.request_id, router=named(state.router_id)
        )
    )
    price = dual_in_words(state.lambda_t) or f"λ_t {dual(state.lambda_t)}."
    click.echo(
        f"Router {state.router_id} now: bills {state.settled}, spend {usd(state.spend_usd)}, "
        f"rewards {state.rewards_applied}. {price}"
    )


def event_of(kind: type[E], **fields: Any) -> E:
    """Return an event. Raises UsageError for values that the contract does not allow."""
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise click.UsageError(f"{first['loc'][-1]} {what_is_wrong(first)}.") from None
