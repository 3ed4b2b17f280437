"""One request on its way through a decision, handed from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from msgspec import Struct

from router_state.events import Asked
from router_state.kernel import Candidates
from router_state.packing.framing import Json
from router_state.plan import Plan
from router_state.record import RequestRecord

Excluded = list[str | None]
"""The reason why each arm may not be called, or None, by arm."""


class Choice(Struct, gc=False, eq=False):
    """One request on its way through a decision, and what is known of each model for it.

    Attributes:
        request: the request; seq: number of its decision.
        now: seconds since the epoch; at: the router's clock, which never steps back.
        seen: predictions for each arm: reward, dollars, scores.
        excluded: why each arm may not be called, or None.
        followed: the record of the request that it follows; None: it follows none, or that one is
            not remembered.
        limited_to: the models that may be called for the request if cost is left aside; None: all.
        reason: the decision's reason where a limit of money changed the decision, else None.
        beyond: whether all models cost more than the caps allow; then the cheapest is called.
        tokens: input tokens priced apart from the rest of a call; 0: none.
        warm: tokens of the prompt that each model's cache holds; None: not known.
        saves: tokens at list price that each model's cache saves; None: no cache is known.
        price: price of a dollar in reward, see `Pacer.weigh`; slot: the context's slot in the
            window.
        beside: cost of calling each arm, in reward, other than its dollars; None: none.
        left_usd: limit of the expected dollars of all calls of the request; most_usd: limit of the
            dollars that these calls stay below in nine of ten cases.
        plan: the calls that may follow; None: none.
        planned: expected reward and dollars of the plan.
        k, why, propensity: position of the chosen arm, the reason of its choice, and the choice's
            probability.
        unpaced: whether the call is not charged to the budget per request, as the incumbent chose
            the model.
        kept: facts that capabilities store about the call, by their names.
        noted: facts of the request that capabilities need until it is published, by their names.
    """

    request: Asked
    now: float
    at: float
    seq: int
    seen: Candidates
    excluded: Excluded
    followed: RequestRecord | None = None
    limited_to: frozenset[str] | None = None
    reason: str | None = None
    beyond: bool = False
    tokens: float = 0.0
    warm: dict[str, int] | None = None
    saves: Mapping[str, float] | None = None
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
    noted: dict[str, object] | None = None

    def note(self, name: str, what: object) -> None:
        """Note something of the request under a capability's name, for a later hook and for
        `Capability.candidate_fields`.
        """
        self.noted = {**(self.noted or {}), name: what}

    def noted_by(self, name: str) -> Any:
        """Return what a capability has noted of the request; None: nothing."""
        return None if self.noted is None else self.noted.get(name)

    def keep(self, name: str, what: Json) -> None:
        """Store something about the call in its record, under the capability's name."""
        self.kept = {**(self.kept or {}), name: what}

    def limit(self, excluded: Excluded, names: tuple[str, ...]) -> None:
        """Rule out arms that can't be called for the request, whatever a dollar is worth."""
        self.excluded = excluded
        self.limited_to = frozenset(
            name for name, why in zip(names, excluded, strict=True) if why is None
        )

    def cap(self, excluded: Excluded, reason: str | None) -> None:
        """Rule out arms that a limit of money does not allow. `reason` becomes the decision's
        reason; None: the limit changes nothing.
        """
        self.excluded, self.reason = excluded, self.reason or reason

    def spare(self, usd: float) -> None:
        """Limit the expected dollars of all calls of the request together."""
        self.left_usd = min(self.left_usd, usd)
