"""Count the tokens that a request's call will send, as far as they are known before it."""

from __future__ import annotations

BYTES_PER_TOKEN = 4
"""UTF-8 bytes of a prompt that count as a token: about right for English with any tokenizer. Where
they are more or fewer, bills show what share of the list price input costs."""


def input_tokens(said: int | None, prompt: str | None) -> int | None:
    """Return what the caller said, else what the prompt has by its length, else None."""
    if said is not None or prompt is None:
        return said
    return -(-len(prompt.encode(errors="surrogatepass")) // BYTES_PER_TOKEN)
