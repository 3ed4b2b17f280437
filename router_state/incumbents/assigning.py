"""Draw who answers a request: the router, or the incumbent. The draw is a hash, so a replay, and a
later request of the same session, find the same one."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Struct, structs

from router_state.config import RouterConfig
from router_state.errors import InvalidConfig

ROUTER, INCUMBENT, HOLDOUT = "router", "incumbent", "holdout"
"""Names of who answers; in the hold-out, too, the incumbent does."""
REASON = "incumbent"
"""Reason of a decision whose model the router did not choose."""


class Incumbent(Struct, frozen=True, omit_defaults=True):
    """The incumbent as declared: what was used before the router, and how much it still answers.

    Attributes:
        mix: the share of its requests that each of its models gets; the shares add up to 1.
        salt: makes the draws of two routers independent.
        observes: whether the router answers nothing, and only publishes its own choice.
        share: share of the requests that the router answers.
        holdout: share of the requests that the incumbent keeps for good.
        by_session: whether one draw holds for a whole session, and not for one request.
        ramp: the shares of a ramp, the first one first; empty: the share stays.
        margin: reward by which the router may be worse than the incumbent, on a ramp.
        budget_usd: per request, as declared beside it.
    """

    mix: dict[str, float]
    salt: str
    observes: bool = False
    share: float = 1.0
    holdout: float = 0.0
    by_session: bool = False
    ramp: tuple[float, ...] = ()
    margin: float = 0.0
    budget_usd: float | None = None

    @property
    def routed(self) -> float:
        """Probability that the router answers a request."""
        return 0.0 if self.observes else min(self.share, 1.0 - self.holdout)

    def check(self, config: RouterConfig) -> None:
        """See `config.Checked`."""
        for name in self.mix:
            if name not in config.models:
                raise InvalidConfig(f"incumbent names {name!r}, which is not among the models")

    def at(self, step: int) -> Incumbent:
        """Return this incumbent with the share of a step of the ramp."""
        if not self.ramp:
            return self
        return structs.replace(self, share=self.ramp[step] if step >= 0 else 0.0)

    def drawn(self, unit: str) -> tuple[str, float]:
        """Return who answers a request or session of this name, and a number in [0, 1) that chooses
        the incumbent's model.

        The router has the lower end of [0, 1), and the hold-out the upper one. So who is routed
        stays routed when the share grows, and the hold-out stays what it is.
        """
        digest = blake2b(f"{self.salt}\n{unit}".encode(), digest_size=16).digest()
        place, other = _unit(digest[:8]), _unit(digest[8:])
        if place < self.routed:
            return ROUTER, other
        return (HOLDOUT if place >= 1.0 - self.holdout else INCUMBENT), other

    def among(self, allowed: Mapping[str, bool]) -> dict[str, float]:
        """Return the incumbent's mix over the allowed models, with shares that add up to 1; empty:
        no model of the mix is allowed.
        """
        found = {name: share for name, share in sorted(self.mix.items()) if allowed.get(name)}
        total = sum(found.values())
        return {name: share / total for name, share in found.items()}


def _unit(digits: bytes) -> float:
    """Return eight bytes as a number in [0, 1) of 53 bits."""
    return (int.from_bytes(digits, "big") >> 11) * 2.0**-53


def model_at(mix: Mapping[str, float], place: float) -> str:
    """Return the model of a mix that a number in [0, 1) chooses."""
    below = 0.0
    for name, share in mix.items():
        below += share
        if place < below:
            return name
    return name  # the shares add up to a little less than 1
