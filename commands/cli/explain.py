"""`pbstream explain`: why a request went to its model, and its bills and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click
from rich.console import Console

from doors.console.bus import open_bus
from doors.console.changing_declarations import declared_at
from doors.console.explained_decision import explain_decision
from doors.console.failures import Failure
from doors.console.found_records import TOPICS, Found, find
from doors.console.output import console, print_json
from doors.console.plan_lines import verifier_lines
from doors.console.router_status import Declared
from doors.console.session import Session, json_option, pass_session, router_option, run
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import absence_of, status_of
from drawing.budget_lines import standing_lines
from drawing.numbers import seconds, usd
from schemas import (
    CostReported,
    DeadLetter,
    LambdaUpdated,
    RewardObserved,
    RouteDecided,
)


@click.command()
@click.argument("request_id")
@router_option
@json_option
@pass_session
def explain(session: Session, request_id: str, router_id: str, as_json: bool) -> None:
    """Explain why a request went to its model, with every term, and what it cost and earned.

    Decisions are found for as long as the topic keeps them (7 days by default).

    \b
      pbstream explain 4f1c22a90b13
      pbstream explain 4f1c22a90b13 --json
    """
    found, declared, then, state = run(_found(session, router_id, request_id))
    decision, letters = found.decision, found.letters
    # A refused request has no decision; its dead letter is the explanation.
    if decision is None and not letters:
        raise Failure(
            f"no decision for {request_id!r} of router {router_id!r} in "
            f"{session.settings.topic('routes')}: "
            "look at the id, or name the router with --router."
        )
    from commands.prompt_read import prompt_read  # brings an encoder along

    read = None
    if found.request is not None:
        own = declared.document.get("projection") if declared is not None else None
        read = prompt_read(found.request, session.settings, projection=own and own["ref"])
    if as_json:
        print_json(
            {
                "prompt": read and read.as_json(),
                "decision": decision and decision.model_dump(mode="json"),
                "costs": [
                    {**bill.model_dump(mode="json"), "priced_usd": _dollars(bill, found, then)}
                    for bill in found.costs
                ],
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
        if decision.label_wanted:
            share = f"{decision.label_probability or 0.0:.3g}"
            out.print(f"A person is asked to label it; that had a probability of {share}.")
        known = [] if state is None else [*standing_lines(state), *verifier_lines(decision, state)]
        for line in known:
            out.print(f"Now: {line}.", soft_wrap=True)
    if read is not None:
        out.print(read.sentence(), soft_wrap=True)
    for attempt in sorted({bill.attempt or 0 for bill in found.costs}):
        bills = [bill for bill in found.costs if (bill.attempt or 0) == attempt]
        of = f" of attempt {attempt}" if attempt else ""
        for bill, late in zip(bills, superseded(bills, lambda source: 0), strict=True):
            out.print(f"Cost{of}: {_bill(bill, _dollars(bill, found, then))}{late}.")
    for one in found.rewards:
        if one.verifier is not None:
            out.print(f"Verdict of {one.verifier} on attempt {one.attempt or 0}: {one.verdict:g}.")
    labels = [one for one in found.rewards if one.verifier is None]
    notes, mean = _notes(labels, session.settings.source_rank, then)
    _outcomes(out, found.costs, list(zip(labels, notes, strict=True)), letters)
    for line in _of_labels(mean, labels, decision, state):
        out.print(f"{line}.", soft_wrap=True)


def _of_labels(
    mean: str,
    labels: list[RewardObserved],
    decision: RouteDecided | None,
    state: LambdaUpdated | None,
) -> list[str]:
    """Return the mean of several people's labels, and what the router now makes of judges'."""
    from doors.console.label_notes import calibration_lines  # brings numpy along

    lines = [mean] if mean else []
    if decision is not None and state is not None:
        lines += [f"Now: {line}" for line in calibration_lines(labels, decision.model, state)]
    return lines


def _notes(
    labels: list[RewardObserved], rank_of: Callable[[str], int], then: Declared | None
) -> tuple[list[str], str]:
    """Return a note for each label, and a sentence about the mean of several people."""
    from doors.console.label_notes import label_notes  # brings numpy along

    sources = None if then is None else then.router.sources
    return (
        (superseded(labels, rank_of), "")
        if sources is None
        else label_notes(labels, rank_of, sources)
    )


def _dollars(bill: CostReported, found: Found, then: Declared | None) -> float | None:
    """Return a bill's dollars at the prices of the decision; None if that declaration is gone or
    lacks the model.
    """
    if bill.cost_usd is not None or found.decision is None or then is None:
        return bill.cost_usd
    from router_state.cache_price import usd_of
    from router_state.long_inputs.declared_prices import price_of
    from router_state.sessions.cache_prices import cache_of

    model = then.router.models.get(bill.model or found.decision.model)
    if model is None or bill.input_tokens is None or bill.output_tokens is None:
        return None
    return usd_of(
        price_of(model),
        input_tokens=bill.input_tokens,
        output_tokens=bill.output_tokens,
        cached=bill.cached_input_tokens,
        cache=cache_of(model),
        writes=found.request is not None and found.request.session_id is not None,
    )


def _bill(bill: CostReported, dollars: float | None) -> str:
    cached = f" ({bill.cached_input_tokens} cached)" if bill.cached_input_tokens else ""
    tokens = f"{bill.input_tokens} input{cached} and {bill.output_tokens} output tokens"
    if bill.cost_usd is not None:
        text = usd(bill.cost_usd)
    else:
        text = tokens if dollars is None else f"{usd(dollars)} for {tokens}"
    return f"{text}{_call(bill)}{_revision(bill.revision)}"


def _call(bill: CostReported) -> str:
    """Return the facts in a bill about the call: the model, how the call ended, and how long it
    took."""
    first, whole = bill.first_token_ms, bill.latency_ms
    parts = (
        bill.model and f"of {bill.model}",
        bill.answered_by and f"answered by {bill.answered_by}",
        bill.status and f"status {bill.status}",
        None if first is None else f"first token after {seconds(first)}",
        None if whole is None else f"ended after {seconds(whole)}",
    )
    return "".join(f", {one}" for one in parts if one)


def _outcomes(
    out: Console,
    costs: list[CostReported],
    rewards: list[tuple[RewardObserved, str]],
    letters: list[DeadLetter],
) -> None:
    if not costs:
        out.print("Cost: none reported yet.")
    for label, late in rewards:
        value = "withdrawn" if label.reward is None else f"{label.reward:g}"
        value = "can't tell" if label.cant_tell else value
        of = "" if label.attempt is None else f" for attempt {label.attempt}"
        out.print(f"Reward{of}: {value} by {label.source}{_revision(label.revision)}{late}.")
    if not rewards:
        out.print("Reward: none reported yet.")
    for letter in letters:
        out.print(
            f"Refused: an event of {letter.topic}, {letter.reason}"
            + (f" ({letter.message})." if letter.message else ".")
        )


def _revision(number: int) -> str:
    return f", revision {number}" if number else ""


def superseded(
    events: Sequence[CostReported | RewardObserved], rank_of: Callable[[str], int]
) -> list[str]:
    """Return a note for each event: why it changed nothing, empty if it did.

    Args:
        rank_of: rank of a source of rewards.
    """
    counts: tuple[str, int] | None = None
    notes = []
    for event in events:
        source = (event.source or "") if isinstance(event, RewardObserved) else ""
        # Revisions compare only within a source; a source of higher rank wins without one.
        if (
            counts is None
            or rank_of(source) > rank_of(counts[0])
            or (source == counts[0] and event.revision > counts[1])
        ):
            counts = source, event.revision
            notes.append("")
        elif source == counts[0]:
            notes.append(" (changed nothing: this or a higher revision came before)")
        else:
            notes.append(f" (changed nothing: that by {counts[0]} counts)")
    return notes


async def _found(
    session: Session, router_id: str, request_id: str
) -> tuple[Found, Declared | None, Declared | None, LambdaUpdated | None]:
    """Return the request's records, the declaration in force, that of the decision, and the
    router's present state.

    Raises:
        Failure: no record is about the request, and there is no such router.
    """
    async with open_bus(session.settings, *TOPICS, *STANDING) as bus:
        found, then = await find(bus, router_id, request_id), None
        if found.decision is not None:
            # A bill in tokens has the prices of its decision, whatever is in force today.
            then = await declared_at(bus, router_id, found.decision.config_offset)
        # What is in force is for the projection alone, which a router keeps for its life; its
        # prices may have changed since.
        router = await status_of(bus, router_id)
        is_found = found.decision is not None or found.letters
        if not is_found and router.state is None and router.in_force is None:
            raise await absence_of(bus, router_id)
        return found, then or router.in_force, then, router.state
