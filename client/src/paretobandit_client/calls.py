"""Read a call in the form of OpenAI's chat completions: its prompt, its needs and its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

Message = Mapping[str, object]
IMAGES = frozenset({"image", "image_url", "input_image", "video", "video_url", "input_video"})
"""Types of the parts of a message that have to be seen, by OpenAI's, Anthropic's and vLLM's
forms."""
SOUNDS = frozenset({"audio", "audio_url", "input_audio"})
"""Types of the parts that a model has to hear."""
DOCUMENTS = frozenset({"document", "file", "input_file"})
"""Types of the parts that may hold text; a turn of nothing else has to be seen."""
BYTES_PER_TOKEN = 4
"""UTF-8 bytes that count as one token, without a tokenizer."""
TOKENS_PER_PART = 250
"""Tokens that an image counts as, about what providers bill for a small one; so does sound."""


def last_user_message(messages: Sequence[Message]) -> str:
    """Return the text of the last user message with text. Without a user message, return the text
    of all messages; where users sent only images or sound, the result is empty.
    """
    texts = [(message.get("role"), text_of(message.get("content"))) for message in messages]
    said = next((text for role, text in reversed(texts) if role == "user" and text.strip()), None)
    if said is not None:
        return said
    sent = _types(one for one in messages if one.get("role") == "user")
    return "" if sent & (IMAGES | SOUNDS | DOCUMENTS) else "\n".join(text for _, text in texts)


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
    types = _types(messages)
    seen = IMAGES if last_user_message(messages) else IMAGES | DOCUMENTS
    if types & seen:
        found["vision"] = True
    if types & SOUNDS:
        found["audio"] = True
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
    others = sum(
        part.get("type") in IMAGES | SOUNDS
        for one in messages
        if isinstance(one, Mapping)
        for part in _parts(one.get("content"))
    )
    return -(-size // BYTES_PER_TOKEN) + others * TOKENS_PER_PART


def _types(messages: Iterable[Message]) -> set[object]:
    """Return the types of the parts of messages."""
    found = (part.get("type") for one in messages for part in _parts(one.get("content")))
    return {kind for kind in found if isinstance(kind, str)}


def _parts(content: object) -> Iterator[Mapping[str, object]]:
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))
