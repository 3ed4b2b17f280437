"""Prices of cached input: the part of a prompt that a model has just seen."""

from __future__ import annotations

from msgspec import Struct


class CachePrice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """List prices of cached input in dollars per million tokens, and how long a cache lasts.

    `write_per_m` None: the price of other input. A prefix below `min_tokens` is not cached.
    """

    read_per_m: float
    write_per_m: float | None = None
    ttl_seconds: float = 300.0
    min_tokens: int = 1024

    def counts_as(self, tokens: float, cached: float, *, input_per_m: float, writes: bool) -> float:
        """Return how many tokens at list price cost as much as these, some of them cached.

        Args:
            writes: whether what is not cached is written to the cache.
        """
        if input_per_m <= 0.0:
            return tokens
        write = input_per_m if self.write_per_m is None or not writes else self.write_per_m
        return ((tokens - cached) * write + cached * self.read_per_m) / input_per_m
