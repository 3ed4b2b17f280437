"""`pbstream request`: one prompt in, one explained decision out."""

from __future__ import annotations

import json
import shlex
from uuid import uuid4

import click

from commands.cli.verifier_options import NOBODY
from doors.console.bus import Bus, open_bus
from doors.console.changing_declarations import refusal_of
from doors.console.explained_decision import explain_decision
from doors.console.failures import Failure, NoAnswer, Refused
from doors.console.output import console, print_json
from doors.console.session import (
    PROMPT,
    Session,
    answered,
    named,
    run,
)
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import absence_of
from ground.json_text import dumps
from ground.messages import Record
from schemas import MalformedEvent, RequestSubmitted, RouteDecided, decode
from schemas.reasons import Reason

TOPICS = ("requests", "routes", "dlq", *STANDING)
"""Topics of a request, of its answer, of its refusal and of its router."""
CAN = ("vision", "audio", "tools", "json_output")
"""Needs that are yes or no."""


@click.command()
@click.argument("prompt", type=PROMPT, required=False)
@click.option(
    "--context",
    metavar="NUMBERS|FILE",
    help="Instead of a prompt: a JSON array of numbers, or a file of one; - is stdin.",
)
@click.option(
    "--allowed",
    multiple=True,
    metavar="MODEL",
    help="A model to choose from; may be given several times.",
)
@click.option(
    "--max-price",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Dollars per 1,000 tokens; dearer models are out.",
)
@click.option(
    "--input-tokens",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tokens that the call will send; only the answer's length is then uncertain.",
)
@click.option(
    "--needs",
    multiple=True,
    type=click.Choice(CAN),
    help="What the model must offer; may be given several times.",
)
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="Conversation that the request belongs to; its models' caches and rewards are shared.",
)
@click.option(
    "--session-budget",
    type=float,
    metavar="USD",
    help="Dollars that all calls of the session may cost together.",
)
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    metavar="NAME",
    help="A verifier of the router that can look at this answer; may be given several times. "
    "Default: all of them. none: one call, without a plan.",
)
@click.option(
    "--follows",
    metavar="ID",
    help="The request that this one tries again, with a model that has not answered it.",
)
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="VERIFIER=VALUE",
    help="With --follows: what a verifier said of that request's answer, from 0 to 1.",
)
@click.option(
    "--signal",
    "signals",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --follows: what else was seen of it: tests_passed, repeats or severity.",
)
@click.option("--id", "request_id", metavar="ID", help="The request's id; default: a new one.")
@answered
def request(
    session: Session,
    prompt: str | None,
    context: str | None,
    allowed: tuple[str, ...],
    max_price: float | None,
    input_tokens: int | None,
    needs: tuple[str, ...],
    session_id: str | None,
    session_budget: float | None,
    verifiers: tuple[str, ...],
    follows: str | None,
    verdicts: tuple[str, ...],
    signals: tuple[str, ...],
    request_id: str | None,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Ask which model shall answer a prompt, and why.

    A call that sends an image or sound and no text needs no prompt: --needs vision or audio.

    A request with a context needs no encoder. A context has as many numbers as the router has
    dimensions; the last one is 1.0.

    \b
      pbstream request "Prove that there are infinitely many primes."
      pbstream request "Hi" --allowed small --allowed medium --max-price 0.002
      pbstream request "And why is that?" --session talk-17
      echo "[0.3, -0.1, 1.0]" | pbstream request --context - --json

    A verifier can look at the answer. A request that follows another one says what was seen.

    \b
      pbstream request "Write a test." --router acme.code --verifier tests
      pbstream request "Write a test." --follows 4f1c22a90b13 --signal tests_passed=0.4
    """
    wordless = not {"vision", "audio"}.isdisjoint(needs)
    if (prompt is None) == (context is None) and not (prompt is None and wordless):
        raise click.UsageError(
            'give a prompt in quotes, or --context NUMBERS: pbstream request "Why is the sky blue?"'
        )
    if prompt == "-":
        raise click.UsageError(
            "a prompt is given in quotes; - is standard input only for --context -"
        )
    event = _event(
        router_id=router_id,
        request_id=request_id or uuid4().hex[:12],
        prompt=prompt,
        context=None if context is None else _numbers(context),
        allowed_models=allowed or None,
        max_price_per_1k=max_price,
        input_tokens=input_tokens,
        session_id=session_id,
        session_budget_usd=session_budget,
        needs=dict.fromkeys(needs, True) or None,
        follows=follows,
        verdicts=_seen(verdicts, "--verdict"),
        signals=_seen(signals, "--signal"),
        verifiers=None if not verifiers else [one for one in verifiers if one != NOBODY],
    )

    async def ask() -> RouteDecided:
        async with (
            open_bus(session.settings, *TOPICS) as bus,
            # The consumer starts first: a worker may answer before it would be ready.
            bus.follow("routes", "dlq", router_id=router_id) as records,
        ):
            placed = await bus.send("requests", event)

            def answered(name: str, record: Record) -> RouteDecided | Refused | None:
                if name == "dlq":
                    return refusal_of(record, placed, "the request")
                decision = decode(RouteDecided, record.value)
                # The partition also holds answers of other routers and to other callers.
                ours = (decision.router_id, decision.request_id) == (
                    event.router_id,
                    event.request_id,
                )
                return decision if ours else None

            answer: RouteDecided | Refused = await records.until(answered, seconds=timeout)
            if isinstance(answer, Refused):
                raise await _explained(bus, answer, router_id)
        return answer

    try:
        decision = run(ask())
    except NoAnswer as error:
        error.message += (
            f" Request {event.request_id} stays queued; `pbstream explain "
            f"{shlex.quote(event.request_id)}{named(router_id)}` shows its answer."
        )
        if prompt is not None:
            error.message += (
                " A worker's first prompt also loads its encoder: --timeout 60 gives it time."
            )
        raise
    if as_json:
        print_json(decision)
        return
    console().print(explain_decision(decision))
    quoted = shlex.quote(decision.request_id)
    click.echo(f"\nWhat it cost:      pbstream cost {quoted} USD{named(router_id)}")
    if decision.plan is not None:
        verify = decision.plan[0].verify
        click.echo(
            f"What {verify} says:".ljust(19)
            + f"pbstream verdict {quoted} {verify} pass{named(router_id)}"
        )
    click.echo(f"How good it was:   pbstream reward {quoted} 0.9{named(router_id)}")


async def _explained(bus: Bus, refused: Refused, router_id: str) -> Failure:
    """Return why a request was refused; of an unknown router also what became of its
    declaration."""
    if refused.reason != Reason.UNKNOWN_ROUTER:
        return refused
    why = (await absence_of(bus, router_id)).message
    return Failure(f"the request was refused, {refused.reason}: {why}")


def _event(**fields: object) -> RequestSubmitted:
    """Return the request of what was given. Raises Refused."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        # Checked with the workers' decoder, so that a refusal here reads as it would there.
        return decode(RequestSubmitted, dumps(given))
    except MalformedEvent as error:
        router_id = str(fields["router_id"])
        raise Refused(
            "the request", error.reason.value, error.message, router_id=router_id
        ) from error


def _seen(said: tuple[str, ...], option: str) -> dict[str, float] | None:
    """Return numbers by their names; None without any."""
    found: dict[str, float] = {}
    for one in said:
        name, _, value = one.rpartition("=")
        try:
            found[name] = float(value) if "." in value else int(value)
        except ValueError:
            raise click.BadParameter(
                f"{one!r} is not NAME=VALUE with a number", param_hint=option
            ) from None
    return found or None


def _numbers(given: str) -> list[float]:
    """Return the numbers of a context: given as they are, or as the name of a file."""
    try:
        if given.lstrip().startswith("["):
            numbers = json.loads(given)
        else:
            with click.open_file(given) as file:
                numbers = json.load(file)
        if isinstance(numbers, list):
            return [float(number) for number in numbers]
    except OSError as error:
        raise click.BadParameter(
            f"{given}: {error.strerror}; give a JSON array of numbers, a file of one, or - for "
            "standard input",
            param_hint="--context",
        ) from None
    except (ValueError, TypeError):
        pass
    raise click.BadParameter(
        f"{given} does not hold a JSON array of numbers, for example [0.3, -0.1, 1.0]",
        param_hint="--context",
    )
