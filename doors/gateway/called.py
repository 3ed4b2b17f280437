"""Turn a call in the form of OpenAI's chat completions into a request: prompt, tokens and needs
come from the call.
"""

from __future__ import annotations

from collections.abc import Mapping

from ground.json_text import dumps, loads
from paretobandit_client.calls import last_user_message, needs_of, tokens_of

OF_CALLS = frozenset(
    {
        "functions",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "response_format",
        "tools",
    }
)
"""Fields of a call that the gateway does not pass on."""


def of_call(body: bytes) -> bytes:
    """Return the request for a call with `messages`; a field of a request in the call wins over the
    field that is derived. Any other body is returned unchanged.
    """
    # Bodies without messages are not parsed, so that the schema sees them exactly as sent.
    if b'"messages"' not in body:
        return body
    try:
        call = loads(body)
    except ValueError:
        return body
    messages = call.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        return body
    needs = needs_of(call)
    found: dict[str, object] = {"input_tokens": tokens_of(messages)}
    if needs:
        found["needs"] = needs
    if "prompt" not in call and "context" not in call:
        found["prompt"] = last_user_message(messages)
    own = {name: value for name, value in call.items() if name not in OF_CALLS}
    if isinstance(own.get("needs"), dict):
        own["needs"] = {**needs, **own["needs"]}
    return dumps({**found, **own})
