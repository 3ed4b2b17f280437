"""Prices of cached input, which a router declares per model."""

from __future__ import annotations

from typing import Protocol

from router_state.cache_price import CachePrice


class ModelOnWire(Protocol):
    """A model as it is declared."""

    cached_input_price_per_m: float | None
    cache_write_price_per_m: float | None
    cache_ttl_seconds: float | None
    cache_min_tokens: int | None


def cache_of(wire: ModelOnWire) -> CachePrice | None:
    """Return a model's prices of cached input; None if none are declared."""
    if wire.cached_input_price_per_m is None:
        return None
    usual = CachePrice(read_per_m=wire.cached_input_price_per_m)
    ttl, least = wire.cache_ttl_seconds, wire.cache_min_tokens
    return CachePrice(
        read_per_m=wire.cached_input_price_per_m,
        write_per_m=wire.cache_write_price_per_m,
        ttl_seconds=usual.ttl_seconds if ttl is None else ttl,
        min_tokens=usual.min_tokens if least is None else least,
    )


def document(cache: CachePrice) -> dict[str, object]:
    """Invert `cache_of`."""
    found: dict[str, object] = {"cached_input_price_per_m": cache.read_per_m}
    if cache.write_per_m is not None:
        found["cache_write_price_per_m"] = cache.write_per_m
    return {
        **found,
        "cache_ttl_seconds": cache.ttl_seconds,
        "cache_min_tokens": cache.min_tokens,
    }
