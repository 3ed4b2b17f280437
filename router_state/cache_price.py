"""Prices of cached input: the part of a prompt that a model has just seen."""

from __future__ import annotations

from msgspec import Struct

from router_state.kernel.given import Price


class CachePrice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """List prices of cached input in dollars per million tokens, and how long a cache lasts.

    `write_per_m` None: tokens written to the cache cost as much as other input. A prefix below
    `min_tokens` tokens is not cached.
    """

    read_per_m: float
    write_per_m: float | None = None
    ttl_seconds: float = 300.0
    min_tokens: int = 1024

    def counts_as(self, tokens: float, cached: float, *, input_per_m: float, writes: bool) -> float:
        """Return the number of tokens at list price that cost as much as `tokens`, of which
        `cached` were read from the cache.

        Args:
            writes: whether the other tokens are written to the cache.
        """
        if input_per_m <= 0.0:
            return tokens
        write = input_per_m if self.write_per_m is None or not writes else self.write_per_m
        return ((tokens - cached) * write + cached * self.read_per_m) / input_per_m


def usd_of(
    price: Price,
    *,
    input_tokens: int,
    output_tokens: int,
    cached: int | None,
    cache: CachePrice | None,
    writes: bool = False,
) -> float:
    """Return dollars for these tokens.

    Args:
        cached: how many of the input tokens were read from the cache; None: not known.
        cache: what cached input costs; None: as other input.
        writes: whether the other tokens were written to the cache, as those of a session are.
    """
    usd = price.cost_usd(input_tokens=input_tokens, output_tokens=output_tokens)
    if cache is None or cached is None:
        return usd
    input_per_m = price.input_price_per_m
    counts = cache.counts_as(
        input_tokens, min(cached, input_tokens), input_per_m=input_per_m, writes=writes
    )
    # Less for cached tokens, more for tokens written to the cache.
    dearer = price.input_factor(input_tokens)
    return usd - dearer * (input_tokens - counts) * input_per_m / 1e6
