"""`pbstream cost` and `pbstream reward`: what a request cost, and how good its answer was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from schemas import CostReported, LambdaUpdated, MalformedEvent, RewardObserved, decode
from schemas.event import Event
from streams.console.bus import open_bus
from streams.console.declarations import refusal_of
from streams.console.failures import NoAnswer, Refused
from streams.console.output import print_json, usd
from streams.console.session import Session, json_option, pass_session, router_option, run

WAIT_SECONDS = 2.0


@click.command()
@click.argument("request_id")
@click.argument("cost_usd", type=click.FloatRange(min=0, max=1000), required=False)
@click.option("--input-tokens", type=click.IntRange(min=0), help="Instead of dollars, priced as at the decision.")
@click.option("--output-tokens", type=click.IntRange(min=0), help="Instead of dollars, priced as at the decision.")
@click.option("--revision", type=click.IntRange(min=0), default=0, help="A higher one replaces a lower one.")
@router_option
@json_option
@pass_session
def cost(
    session: Session,
    request_id: str,
    cost_usd: float | None,
    input_tokens: int | None,
    output_tokens: int | None,
    revision: int,
    router_id: str,
    as_json: bool,
) -> None:
    """Report what a request really cost, in dollars or in tokens.

    \b
      pbstream cost 4f1c22a90b13 0.00031
      pbstream cost 4f1c22a90b13 --input-tokens 68 --output-tokens 412
      pbstream cost 4f1c22a90b13 0.00029 --revision 1
    """
    if cost_usd is None and (input_tokens is None or output_tokens is None):
        raise click.UsageError("give dollars, or both of --input-tokens and --output-tokens.")
    event = CostReported(
        router_id=router_id,
        request_id=request_id,
        cost_usd=cost_usd,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        revision=revision,
    )
    _report(session, "costs", event, as_json)


@click.command()
@click.argument("request_id")
@click.argument("reward", type=click.FloatRange(min=0, max=1))
@click.option("--source", default="human", show_default=True, help="Who says so: human, judge, user, metric, or any name.")
@click.option("--revision", type=click.IntRange(min=0), default=0, help="A higher one of the same source replaces a lower one.")
@router_option
@json_option
@pass_session
def reward(session: Session, request_id: str, reward: float, source: str, revision: int, router_id: str, as_json: bool) -> None:
    """Report how good the answer to a request was, from 0 to 1; days later is fine.

    \b
      pbstream reward 4f1c22a90b13 0.85 --source judge
    """
    event = RewardObserved(
        router_id=router_id,
        request_id=request_id,
        reward=reward,
        source=source,
        revision=revision,
        observed_at=datetime.now(UTC),
    )
    _report(session, "rewards", event, as_json)


def _report(session: Session, name: str, event: Event, as_json: bool) -> None:
    """Send one event, and show the router's next state if one is published soon."""

    async def send() -> tuple[Any, LambdaUpdated | None]:
        async with open_bus(session.settings, name, "lambda", "dlq") as bus:
            async with bus.follow("lambda", "dlq", router_id=event.router_id) as records:
                placed = await bus.send(name, event)

                def noticed(topic: str, record: Any) -> LambdaUpdated | Refused | None:
                    if topic == "dlq":
                        return refusal_of(record, placed, "the event")
                    if record.key != event.router_id.encode() or record.value is None:
                        return None
                    return decode(LambdaUpdated, record.value)

                try:
                    seen: LambdaUpdated | Refused = await records.until(noticed, seconds=WAIT_SECONDS)
                except NoAnswer:
                    return placed, None
            if isinstance(seen, Refused):
                raise seen
            return placed, seen

    try:
        placed, state = run(send())
    except MalformedEvent as error:
        raise Refused("the event", error.reason.value, error.message) from error
    if as_json:
        sent = {"topic": placed.topic, "partition": placed.partition, "offset": placed.offset}
        print_json({"sent": sent, "state": state and state.model_dump(mode="json")})
        return
    click.echo(f"Sent to {placed.topic}, partition {placed.partition}, offset {placed.offset}.")
    if state is None:
        click.echo(
            f"Nothing changed within {WAIT_SECONDS:g} s: it was reported before, its request is not known yet (it is kept for "
            "PB_ORPHAN_WAIT seconds), or no worker runs."
        )
    else:
        click.echo(
            f"Router {state.router_id} now: bills {state.settled}, spend {usd(state.spend_usd)}, "
            f"rewards {state.rewards_applied}, λ_t {state.lambda_t:.4g}."
        )
