"""One request on its way through a decision, handed from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from msgspec import Struct

from router_state.events import Asked
from router_state.kernel import Candidates
from router_state.packing.framing import Json
from router_state.plan import Plan

Excluded = list[str | None]
"""Per arm why it may not be called, or None."""


class Waits(NamedTuple):
    """Expected times of the calls of a request, by arm.

    Attributes:
        units: in the unit of the target; seconds: in seconds.
    """

    units: list[float]
    seconds: list[float]


class Choice(Struct, gc=False, eq=False):
    """The knowledge of a request, and of each model for it.

    Attributes:
        request: what was asked; seq: number of its decision.
        now: seconds since the epoch; at: the router's clock, which never steps back.
        seen: what is expected of each arm: reward, dollars, scores.
        excluded: why each arm may not be called, or None.
        limited_to: the models that the request may be given to whatever they cost; None: to all.
        reason: what a limit of money makes the reason of the decision, or None.
        beyond: whether caps pay for no model, and the cheapest is called all the same.
        tokens: input tokens that are counted apart, 0 where none are.
        warm: tokens of the prompt that each model has just seen; None: not known.
        saves: tokens at list price that a call of each model saves; None: no cache is known.
        waits: how long calls take; None: it is not known, or does not matter.
        price: of a dollar, in reward, see `Pacer.weigh`; slot: its context's in the window.
        beside: what a call of each arm costs in reward beside its dollars; None: nothing.
        left_usd: dollars that all its calls together may be expected to cost; most_usd: those that
            they stay below in nine of ten cases.
        plan: what may follow the call; None: nothing. planned: its expected reward and dollars.
        k, why, propensity: the chosen arm, why, and with which probability it was chosen.
        unpaced: whether the budget of a request does not pay it, as the router did not choose it.
        kept: what capabilities keep of the call, by their names.
    """

    request: Asked
    now: float
    at: float
    seq: int
    seen: Candidates
    excluded: Excluded
    limited_to: frozenset[str] | None = None
    reason: str | None = None
    beyond: bool = False
    tokens: float = 0.0
    warm: dict[str, int] | None = None
    saves: Mapping[str, float] | None = None
    waits: Waits | None = None
    left_usd: float = inf
    most_usd: float = inf
    price: float = 0.0
    slot: int = -1
    beside: list[float] | None = None
    plan: Plan | None = None
    planned: tuple[float, float] = (0.0, 0.0)
    k: int = -1
    why: str = "ucb"
    propensity: float = 0.0
    unpaced: bool = False
    kept: dict[str, Json] | None = None

    def keep(self, name: str, what: Json) -> None:
        """Keep something of the call in its record, under a capability's name."""
        self.kept = {**(self.kept or {}), name: what}

    def limit(self, excluded: Excluded, names: tuple[str, ...]) -> None:
        """Rule out arms that the request can't be given to, whatever a dollar is worth."""
        self.excluded = excluded
        self.limited_to = frozenset(
            name for name, why in zip(names, excluded, strict=True) if why is None
        )

    def cap(self, excluded: Excluded, reason: str | None) -> None:
        """Rule out arms that a limit of money does not allow; `reason` is why that changes the
        decision, where it does."""
        self.excluded, self.reason = excluded, self.reason or reason

    def spare(self, usd: float) -> None:
        """Limit what all its calls together may be expected to cost."""
        self.left_usd = min(self.left_usd, usd)
