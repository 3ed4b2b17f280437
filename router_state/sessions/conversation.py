"""One session: a conversation that requests name, with the prefix that each model saw last."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from router_state.arms import Arms
from router_state.cache_price import CachePrice
from router_state.sessions.caching import Caching

MOST_MODELS = 8
"""Most models of a session whose prefixes are remembered: the latest ones."""


class Warm(Struct):
    """A prefix in a model's cache: its number of tokens, and the time when the model last saw it,
    in seconds since the epoch.
    """

    tokens: int
    at: float


class Session(Struct, omit_defaults=True):
    """One conversation.

    `turns` is the number of requests so far, `last` the id of the last request, `at` its time, and
    `warm` the prefix that each model saw last.
    """

    turns: int
    at: float
    warm: dict[str, Warm]
    last: str | None = None

    def seen(self, model: str, tokens: int, *, at: float) -> None:
        """Note that a model has seen a prompt of the session."""
        known = self.warm.pop(model, None)
        if known is None or known.at <= at:
            known = Warm(tokens, at)
        self.warm[model] = known
        while len(self.warm) > MOST_MODELS:
            del self.warm[next(iter(self.warm))]

    def unseen(self, model: str, *, at: float) -> bool:
        """Note that a model did not answer, so the model may not have cached the prompt; return
        whether the session changed.
        """
        if model not in self.warm or self.warm[model].at != at:
            return False
        del self.warm[model]
        return True

    @property
    def is_sound(self) -> bool:
        """Tell whether the numbers can be true."""
        return self.turns >= 1 and len(self.warm) <= MOST_MODELS


def warmth(
    session: Session | None, prices: Mapping[str, CachePrice], tokens: int, *, now: float
) -> dict[str, int]:
    """Return the number of a prompt's tokens in each model's cache, as far as known."""
    found = {}
    for model, seen in ({} if session is None else session.warm).items():
        cache = prices.get(model)
        # A prompt that is shorter than the one before was rewritten, so its beginning may not be
        # cached.
        if (
            cache is not None
            and cache.min_tokens <= seen.tokens <= tokens
            and now - seen.at <= cache.ttl_seconds
        ):
            found[model] = seen.tokens
    return found


def saved(
    arms: Arms,
    caching: Caching,
    prices: Mapping[str, CachePrice],
    warm: Mapping[str, int],
    tokens: int,
) -> dict[str, float]:
    """Return the number of tokens at list price that a call of each model saves with these warm
    prefixes; below 0: writing to the cache costs more.
    """
    found = {}
    for model, cache in prices.items():
        arm = arms.find(model)
        if arm is None or arm.costs.free:
            continue
        hit = warm.get(model, 0) * caching.chance(model)
        input_per_m = arm.price.input_price_per_m
        counts = cache.counts_as(tokens, hit, input_per_m=input_per_m, writes=True)
        if counts != tokens:
            found[model] = tokens - counts
    return found
