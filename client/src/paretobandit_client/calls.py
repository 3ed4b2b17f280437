"""Read a call in the form of OpenAI's chat completions: its prompt, its needs and its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Message = Mapping[str, object]
IMAGES = frozenset({"image", "image_url", "input_image"})
"""Types of the parts of a message that are images, by OpenAI's and Anthropic's forms."""
BYTES_PER_TOKEN = 4
"""UTF-8 bytes that count as one token, without a tokenizer."""
TOKENS_PER_IMAGE = 250
"""Tokens that an image counts as, about what providers bill for a small one."""


def last_user_message(messages: Sequence[Message]) -> str:
    """Return the text of the last user message; without one, all text there is."""
    texts = [(message.get("role"), text_of(message.get("content"))) for message in messages]
    return next(
        (text for role, text in reversed(texts) if role == "user" and text),
        "\n".join(text for _, text in texts),
    )


def text_of(content: object) -> str:
    """Return the text of a message's content, a string or a list of parts."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _parts(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def needs_of(call: Mapping[str, object]) -> dict[str, object]:
    """Return the capabilities that a call needs, by the names of `Needs`; empty: none.

    Args:
        call: `messages`, and as far as they are there `tools`, `functions`, `response_format`,
            `max_tokens` or `max_completion_tokens`.
    """
    given = call.get("messages")
    messages = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    found: dict[str, object] = {}
    if any(part.get("type") in IMAGES for one in messages for part in _parts(one.get("content"))):
        found["vision"] = True
    if (
        call.get("tools")
        or call.get("functions")
        or any(one.get("role") == "tool" or one.get("tool_calls") for one in messages)
    ):
        found["tools"] = True
    form = call.get("response_format")
    if form is not None and not (isinstance(form, Mapping) and form.get("type") == "text"):
        found["json_output"] = True
    most = call.get("max_completion_tokens") or call.get("max_tokens")
    if isinstance(most, int) and not isinstance(most, bool) and most > 0:
        found["output_tokens"] = most
    return found


def tokens_of(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages are, by the length of their text."""
    size = sum(
        len(text_of(one.get("content")).encode(errors="surrogatepass"))
        for one in messages
        if isinstance(one, Mapping)
    )
    images = sum(
        part.get("type") in IMAGES
        for one in messages
        if isinstance(one, Mapping)
        for part in _parts(one.get("content"))
    )
    return -(-size // BYTES_PER_TOKEN) + images * TOKENS_PER_IMAGE


def _parts(content: object) -> Iterator[Mapping[str, object]]:
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))
