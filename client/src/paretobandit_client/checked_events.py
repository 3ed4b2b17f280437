"""Refuse events that the service would refuse, before they are sent."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import structs

from paretobandit_client import bounds
from paretobandit_client.checks import field_value
from paretobandit_client.client_errors import Refused
from paretobandit_client.sent_events import Ask, Cost, Event, Reward

E = TypeVar("E", bound=Event)
MAX_PROMPT_BYTES = 2**20
"""Largest prompt, in bytes of UTF-8 (the wire contract)."""


def checked(event: E) -> E:
    """Return an event that can be sent: with numbers of Python's own, and a prompt of valid
    Unicode.

    Raises:
        ValueError: the service would refuse a value; the message names the value's field.
        Refused: the prompt is larger than any service takes.
    """
    given = structs.asdict(event)
    fields: dict[str, Any] = {field: field_value(field, value) for field, value in given.items()}
    sound = type(event)(**fields)
    match sound:
        case Ask():
            _check_ask(sound)
        case Cost():
            _check_cost(sound)
        case Reward():
            _check_reward(sound)
    return sound


def _check_ask(event: Ask) -> None:
    bounds.name("request_id", event.request_id)
    wants = event.needs
    is_wordless = wants is not None and (wants.vision or wants.audio)
    if event.prompt is None and event.context is None and not is_wordless:
        raise ValueError(
            "give a prompt or a context, or needs that say that the call sends an image or sound"
        )
    if event.session_budget_usd is not None and event.session_id is None:
        raise ValueError("session_budget_usd needs a session")
    if event.follows is None and not (event.verdicts is None and event.signals is None):
        raise ValueError("verdicts and signals need follows: the request whose answer they are of")
    if event.follows == event.request_id:
        raise ValueError("follows names the request itself")
    if event.prompt is not None and event.context is None and _too_large(event.prompt):
        raise Refused(
            "prompt_too_large",
            f"over {MAX_PROMPT_BYTES} bytes of UTF-8",
            router_id=event.router_id,
            request_id=event.request_id,
        )


def _check_cost(event: Cost) -> None:
    bounds.name("request_id", event.request_id)
    if event.cost_usd is None and None in (event.input_tokens, event.output_tokens):
        raise ValueError("a bill needs cost_usd, or both input_tokens and output_tokens")
    cached, into = event.cached_input_tokens, event.input_tokens
    if cached is not None and into is not None and cached > into:
        raise ValueError(f"cached_input_tokens must be at most the {into:,} input_tokens")


def _check_reward(event: Reward) -> None:
    if not event.request_id and event.session_id is None:
        bounds.name("request_id", event.request_id)
    if event.reward is None and event.revision < 1:
        raise ValueError(
            "a withdrawal needs a revision above that of the label: 1 where none was said"
        )
    if event.cant_tell and event.reward is not None:
        raise ValueError("cant_tell is for a label without a reward")


def _too_large(prompt: str) -> bool:
    return 4 * len(prompt) > MAX_PROMPT_BYTES and len(prompt.encode()) > MAX_PROMPT_BYTES
