"""Estimate before a call is made how many tokens it sends, and whether it sends text at all."""

from __future__ import annotations

from typing import Protocol

BYTES_PER_TOKEN = 4
"""UTF-8 bytes of a prompt that count as a token: about right for English with any tokenizer. If a
prompt has more or fewer, bills show which share of the list price input costs.
"""


class Senses(Protocol):
    """The two needs of a request that tell whether it holds images or sound."""

    @property
    def vision(self) -> bool: ...

    @property
    def audio(self) -> bool: ...


def is_wordless(prompt: str | None, needs: Senses | None) -> bool:
    """Tell whether a request is an image or sound without text. It is routed by its needs, on the
    mean context.
    """
    return needs is not None and (needs.vision or needs.audio) and (not prompt or prompt.isspace())


def input_tokens(said: int | None, prompt: str | None) -> int | None:
    """Return the tokens that the caller gave, or those of the prompt by its length; None where
    there is neither."""
    if said is not None or not prompt or prompt.isspace():
        return said
    return -(-len(prompt.encode(errors="surrogatepass")) // BYTES_PER_TOKEN)
