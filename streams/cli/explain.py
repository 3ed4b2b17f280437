"""`pbstream explain`: why a request went where it went, and what came of it."""

from __future__ import annotations

import click
from rich.console import Console

from schemas import CostReported, DeadLetter, RewardObserved
from streams.console.bus import open_bus
from streams.console.decision import explain_decision
from streams.console.declarations import Declared, read_router
from streams.console.failures import Failure, NotReadable
from streams.console.found import TOPICS, Found, find
from streams.console.output import console, print_json, usd
from streams.console.session import Session, json_option, pass_session, router_option, run


@click.command()
@click.argument("request_id")
@router_option
@json_option
@pass_session
def explain(session: Session, request_id: str, router_id: str, as_json: bool) -> None:
    """Say why a request went to its model, every term of it, and what it cost and earned.

    Decisions are found for as long as the topic keeps them (7 days by default).

    \b
      pbstream explain 4f1c22a90b13
      pbstream explain 4f1c22a90b13 --json
    """
    found, declared = run(_found(session, router_id, request_id))
    decision, letters = found.decision, found.letters
    if decision is None and not letters:
        raise Failure(
            f"no decision for {request_id!r} of router {router_id!r} in "
            f"{session.settings.topic('routes')}: "
            "look at the id, or name the router with --router."
        )
    from streams.console.prompt_read import prompt_read  # brings an encoder along

    read = None
    if found.request is not None:
        own = declared.document.get("projection") if declared is not None else None
        read = prompt_read(found.request, session.settings, projection=own and own["ref"])
    if as_json:
        print_json(
            {
                "prompt": read and read.as_json(),
                "decision": decision and decision.model_dump(mode="json"),
                "costs": [event.model_dump(mode="json") for event in found.costs],
                "rewards": [event.model_dump(mode="json") for event in found.rewards],
                "dead_letters": [
                    {"topic": one.topic, "reason": one.reason, "message": one.message}
                    for one in letters
                ],
            }
        )
        return
    out = console()
    if decision is not None:
        out.print(explain_decision(decision))
    if read is not None:
        out.print(read.sentence(), soft_wrap=True)
    _outcomes(out, found.costs, found.rewards, letters)


def _outcomes(
    out: Console,
    costs: list[CostReported],
    rewards: list[RewardObserved],
    letters: list[DeadLetter],
) -> None:
    for bill in costs:
        tokens = f"{bill.input_tokens} input and {bill.output_tokens} output tokens"
        out.print(
            "Cost: "
            f"{tokens if bill.cost_usd is None else usd(bill.cost_usd)}{_revision(bill.revision)}."
        )
    if not costs:
        out.print("Cost: none reported yet.")
    for label in rewards:
        out.print(f"Reward: {label.reward:g} by {label.source}{_revision(label.revision)}.")
    if not rewards:
        out.print("Reward: none reported yet.")
    for letter in letters:
        out.print(
            f"Refused: an event of {letter.topic}, {letter.reason}"
            + (f" ({letter.message})." if letter.message else ".")
        )


def _revision(number: int) -> str:
    return f", revision {number}" if number else ""


async def _found(
    session: Session, router_id: str, request_id: str
) -> tuple[Found, Declared | None]:
    async with open_bus(session.settings, *TOPICS, "routers", "lambda") as bus:
        found = await find(bus, router_id, request_id)
        try:
            return found, await read_router(bus, router_id, seconds=0.0)
        except NotReadable:
            return found, None
