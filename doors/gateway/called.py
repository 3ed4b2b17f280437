"""Take a call to a model, as OpenAI's chat completions have it, in place of a request: the prompt,
its tokens and its needs are found in the call.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

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
"""Fields of a call that go no further than the gateway."""


def of_call(body: bytes) -> bytes:
    """Return a request in place of a call with `messages`; what it says of itself wins. Any other
    body is returned as it is."""
    # Bodies without messages are not parsed: what a parser bends, the schema would never see.
    if b'"messages"' not in body:
        return body
    try:
        call = orjson.loads(body)
    except orjson.JSONDecodeError:
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
    return orjson.dumps({**found, **own})
