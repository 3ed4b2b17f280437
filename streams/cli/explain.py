"""`pbstream explain`: why a request went where it went, and what came of it."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from schemas import (
    CostReported,
    DeadLetter,
    MalformedEvent,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    decode,
)
from schemas.event import Event
from streams.console.bus import Bus, open_bus
from streams.console.decision import explain_decision
from streams.console.failures import Failure
from streams.console.output import console, print_json, usd
from streams.console.prompt_read import prompt_read
from streams.console.session import Session, json_option, pass_session, router_option, run

TOPICS = ("requests", "routes", "costs", "rewards", "dlq")

Found = tuple[
    RouteDecided | None,
    list[CostReported],
    list[RewardObserved],
    list[DeadLetter],
    RequestSubmitted | None,
]


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
    decision, costs, rewards, letters, request = run(_find(session, router_id, request_id))
    if decision is None and not letters:
        raise Failure(
            f"no decision for {request_id!r} of router {router_id!r} in "
            f"{session.settings.topic('routes')}: "
            "look at the id, or name the router with --router."
        )
    read = None if request is None else prompt_read(request, session.settings)
    if as_json:
        print_json(
            {
                "prompt": read and read.as_json(),
                "decision": decision and decision.model_dump(mode="json"),
                "costs": [event.model_dump(mode="json") for event in costs],
                "rewards": [event.model_dump(mode="json") for event in rewards],
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
    _outcomes(out, costs, rewards, letters)


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


async def _find(session: Session, router_id: str, request_id: str) -> Found:
    async with open_bus(session.settings, *TOPICS) as bus:
        decisions = await _events(bus, "routes", RouteDecided, router_id, request_id)
        costs = await _events(bus, "costs", CostReported, router_id, request_id)
        rewards = await _events(bus, "rewards", RewardObserved, router_id, request_id)
        letters = await _dead_letters(bus, router_id, request_id)
        asked = await _events(bus, "requests", RequestSubmitted, router_id, request_id)
    # The first answer holds the candidates; a repeat may lack them.
    first = [decision for decision in decisions if not decision.repeat] or decisions
    return (
        (first[-1] if first else None),
        costs[::-1],
        rewards[::-1],
        letters,
        asked[-1] if asked else None,
    )


async def _events(
    bus: Bus, name: str, kind: type[Any], router_id: str, request_id: str
) -> list[Any]:
    """Return a request's events of one topic, the newest first."""
    needle, found = request_id.encode(), []
    async for record in bus.backwards(name, router_id):
        # Most records are of other requests; only those that may be ours are parsed.
        if record.value is None or (request_id.isascii() and needle not in record.value):
            continue
        event = _readable(kind, record.value)
        if event is not None and (event.router_id, event.request_id) == (router_id, request_id):
            found.append(event)
    return found


async def _dead_letters(bus: Bus, router_id: str, request_id: str) -> list[DeadLetter]:
    found = []
    async for record in bus.backwards("dlq", router_id):
        if record.value is None or request_id.encode() not in record.value:
            continue
        try:
            letter = DeadLetter.from_headers(record.headers)
        except MalformedEvent:
            continue
        kinds: dict[str, type[Event]] = {
            "requests": RequestSubmitted,
            "costs": CostReported,
            "rewards": RewardObserved,
        }
        kind = kinds.get(bus.name_of(letter.topic))
        event: Any = kind and _readable(kind, record.value)
        # What cannot be parsed is shown as well: it names the id somewhere, and its key is the
        # router's.
        if (event is None and record.key == router_id.encode()) or (
            event is not None and (event.router_id, event.request_id) == (router_id, request_id)
        ):
            found.append(letter)
    return found


def _readable(kind: type[Any], value: bytes) -> Any | None:
    try:
        return decode(kind, value)
    except MalformedEvent:
        return None
