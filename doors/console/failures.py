"""Define the failures of commands, each with one sentence that says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

from doors.console.session import named


class Failure(click.ClickException):
    """Error of a command that could not do its work (exit code 1)."""


class NoAnswer(Failure):
    """Nothing came back in time."""

    def __init__(self, seconds: float, *, web_port: int, waited_for: str = "answered") -> None:
        super().__init__(
            f"no worker {waited_for} within {seconds:g} s: is `pbstream worker` running, with the "
            f"same PB_BOOTSTRAP? If it is, {_ready_page(web_port)} says why it is not ready."
        )


def _ready_page(port: int) -> str:
    return f"http://127.0.0.1:{port}/readyz (or what it printed)" if port else "what it printed"


class NoBroker(Failure):
    """No Kafka answers at the address, or it rejects this user."""

    def __init__(self, bootstrap: str, why: str | None = None) -> None:
        super().__init__(
            f"{why}."
            if why
            else (
                f"no Kafka broker answers at {bootstrap}: start one with `pbstream broker`, or "
                "set PB_BOOTSTRAP to one that runs, in each terminal."
            )
        )


class NotAllowed(Failure):
    """Kafka refused what the command did."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"Kafka does not allow it ({what}): `pbstream topics acls --role operator --check` "
            "names the right."
        )


class NoTopics(Failure):
    """The service's topics do not exist."""

    def __init__(self, missing: list[str], bootstrap: str) -> None:
        what = (
            f"topic {missing[0]} does" if len(missing) == 1 else f"topics {', '.join(missing)} do"
        )
        super().__init__(
            f"{what} not exist on {bootstrap}: run `pbstream topics create` (PB_PREFIX chooses "
            "other names)."
        )


class NoRouter(Failure):
    """The router was never declared, or is gone."""

    def __init__(self, router_id: str, *, known: Iterable[str] = ()) -> None:
        close = difflib.get_close_matches(router_id, known, n=1)
        meant = f"did you mean {close[0]!r}? Else " if close else ""
        super().__init__(
            f"router {router_id!r} is not declared: {meant}{first_model(router_id)}; "
            "`pbstream routers list` shows those that are."
        )


def first_model(router_id: str) -> str:
    """Return the command to type when there is no router, or one without models."""
    return (
        "add a first model with `pbstream models add NAME --input-price USD --output-price USD"
        f"{named(router_id)}`"
    )


class NotReadable(Failure):
    """Compaction removed the declaration in force, and no worker has written it again yet."""

    def __init__(self, router_id: str, offset: int) -> None:
        super().__init__(
            f"what is in force of router {router_id!r}, offset {offset}, has been compacted away "
            "behind a declaration that no "
            "worker has read yet: start one (`pbstream worker`); it writes it again, and this "
            "command works."
        )


class BadSetting(click.ClickException):
    """A setting is wrong (exit code 2)."""

    exit_code = 2


REMEDIES = {
    "unknown_router": "declare it: `pbstream models add NAME --input-price USD --output-price USD`",
    "router_unreadable": "the log and pb.alerts say why: start workers of the version that wrote "
    "its state, or "
    "let it go with "
    "`pbstream routers remove`",
    "empty_portfolio": (
        "give the router a model: `pbstream models add NAME --input-price USD --output-price USD`"
    ),
    "no_allowed_model": "`pbstream models list` shows the models that can be allowed",
    "no_affordable_model": "raise --max-price, or see the prices with `pbstream models list`",
    "wrong_context": "a context needs as many numbers as the router has dimensions, the "
    "last one 1.0; `pbstream models add` sets the dimensions of a new router (--dimensions), or "
    "the projection that makes contexts of its prompts (--projection)",
    "encoder_unavailable": "send a --context, or give the worker an encoder "
    "(PB_ENCODER_BACKEND, PB_ENCODER_PATH) and the router's projection (PB_PRIORS_PATH)",
    "cap_reached": "wait until the cap refills, or raise it in the router's declaration",
    "budget_spent": "wait until the next period, or raise it with `pbstream budget set`, a pool's "
    "with `pbstream pools set`",
    "session_spent": "end the run, or give it more with --session-budget",
    "chain_too_long": "ask a person, or begin anew without `follows`",
    "stale_config": "somebody else changes this router at the same time; try again",
    "empty_prompt": "a prompt needs at least one character that is not white space",
    "corrupt_snapshot": (
        "look at it with `pbstream snapshot inspect FILE`; the workers may be older than this "
        "pbstream"
    ),
    "wrong_prior": "put the folder that `pbstream fit` wrote where the workers' PB_PRIORS_PATH "
    "leads; if it is there, fit it again, with the dimensions of the router",
    "wrong_projection": "put the folder that `pbstream fit` wrote where the workers' "
    "PB_PRIORS_PATH leads, all workers alike; `pbstream doctor` looks whether it is there",
}
"""Advice about a refusal, by its reason."""


class Refused(Failure):
    """The worker refused the event; its dead letter says why."""

    def __init__(self, what: str, reason: str, message: str, *, router_id: str) -> None:
        why = f" ({message})" if message else ""
        remedy = f": {REMEDIES[reason]}" if reason in REMEDIES else ""
        # A command to be copied names the router that was refused.
        remedy = re.sub(
            r"`(pbstream (?:budget|models|routers) [^`]*)`",
            lambda found: f"`{found[1]}{named(router_id)}`",
            remedy,
        )
        super().__init__(f"{what} was refused, {reason}{why}{remedy}.")
        self.reason = reason


KNOWN = {
    "CorruptSnapshot",
    "EncoderError",
    "ForeignState",
    "KafkaUnavailable",
    "MissingData",
    "MissingExtra",
    "MissingRights",
    "StateLost",
    "UnreadableBatch",
    "UnusableArrays",
    "UnusableJudgements",
}
"""Names of errors whose text tells a user everything; names, so that their modules need not be
imported."""


def in_a_sentence(error: Exception) -> click.ClickException | None:
    """Return a known failure as a click exception; None for a defect, which keeps its traceback."""
    text = str(error)
    match type(error).__name__:
        case "BadSettings":
            return BadSetting(text)
        case "TopicsNotReady":
            return Failure(_topics(text.splitlines()))
        case "TopicAuthorizationFailedError" | "GroupAuthorizationFailedError":
            return NotAllowed(text)
    if KNOWN & {base.__name__ for base in type(error).__mro__}:
        return Failure(text)
    if (
        # Click prints its own errors, and says nothing where nobody reads on. An OSError without a
        # system message is a defect; its traceback helps more.
        isinstance(error, click.ClickException | BrokenPipeError)
        or not isinstance(error, OSError)
        or not error.strerror
    ):
        return None
    return Failure(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)


def _topics(problems: list[str]) -> str:
    """Join problems of many topics that are the same."""
    missing = [line.split()[1] for line in problems if " does not exist: " in line]
    if len(missing) < 2:
        return "\n".join(problems)
    others = [line for line in problems if " does not exist: " not in line]
    return "\n".join(
        [f"topics {', '.join(missing)} do not exist: run `pbstream topics create`.", *others]
    )
