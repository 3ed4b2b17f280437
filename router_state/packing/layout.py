"""The numbers of a model and of a router, declared once: names, places and order in the state.

Packing, restoring and the checks of a snapshot follow from these declarations. A name is the path
of an attribute, from an `Arm`, a `SharedPrior`, a `RouterState` or a pacer.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from router_state.errors import DamagedState

LARGEST_EXACT = 2.0**53
"""Largest whole number up to which floats are exact."""


class Numbers:
    """Numbers of one kind of object, read and written in one order.

    Args:
        names: two or more paths of attributes; `whole`: those of them that are whole numbers.

    Attributes:
        of: function that returns the numbers of an object as a tuple.
    """

    __slots__ = ("_owners", "_whole", "names", "of")

    def __init__(self, *names: str, whole: Iterable[str] = ()) -> None:
        self.names, self.of = names, attrgetter(*names)
        self._owners = [name.rpartition(".") for name in names]
        counts = frozenset(whole)
        self._whole = [name in counts for name in names]

    def __len__(self) -> int:
        return len(self.names)

    def put(self, one: object, values: Iterable[Any]) -> None:
        """Invert `of`. Raises DamagedState where a count is no whole number."""
        for (path, _, name), whole, value in zip(self._owners, self._whole, values, strict=True):
            owner = attrgetter(path)(one) if path else one
            if whole and not (abs(value) < LARGEST_EXACT and value == int(value)):
                raise DamagedState(f"{path}.{name} is {value}, no whole number")
            setattr(owner, name, int(value) if whole else value)


SIDES = tuple(
    f"{side}.{name}"
    for side in ("up", "down")
    for name in ("evidence", "count", "total", "since", "leverage")
)
"""Numbers of a detector: both sides of its cumulative sum."""
WATCHED = ("count", "sigma", "leverage", "spread")
"""Numbers of a detector: the usual residuals and leverages."""
HEAD = Numbers("pulls_left", "last_played", "costs.awaited", "retired_at")
"""Numbers of a model that every decision may change, stored in the head."""
REWARDS = Numbers(
    "rewards.decay",
    "rewards.forgotten",
    "rewards.last_update",
    *(f"detector.{name}" for name in WATCHED),
    *(f"detector.{name}" for name in SIDES),
    whole=("rewards.last_update", "detector.up.count", "detector.down.count"),
)
"""Numbers of a model that a reward changes, beside the arrays of its regression."""
SUSPICION = Numbers("offset", "count", "evidence", "since", "after", whole=("count", "after"))
"""Numbers of a suspicion, behind `REWARDS` while the model is suspected."""
COSTS = Numbers(
    "costs.regression.decay",
    "costs.ratio",
    "costs.bills",
    "costs.calibration",
    "costs.paid",
    "costs.input_share",
    *(f"costs.detector.{name}" for name in WATCHED),
    *(f"costs.detector.{name}" for name in SIDES),
    whole=("costs.detector.up.count", "costs.detector.down.count"),
)
"""Numbers of a model that a bill changes, beside the arrays of its regression."""
SHARED = Numbers(
    "ridge",
    "bias_ridge",
    "shared_ridge",
    "noise",
    "fourth",
    "noise_count",
    "seen",
    "due_at",
    whole=("seen", "due_at"),
)
"""Scales of a shared prior."""
COUNTERS = Numbers(
    "t",
    "seq",
    "settled",
    "expired",
    "rewards_applied",
    "spent.usd",
    "committed.usd",
    "unmatched_cost_usd",
    "latest",
    "forgotten.requests",
    "forgotten.bills",
    "forgotten.rewards",
    "forgotten.spend_usd",
)
"""The books of a router."""
RESTS = Numbers("spent.rest", "committed.rest")
"""Rounding errors of the sums, stored in the head where they are not 0."""
EMA = Numbers("lambda_t", "cost_ema_usd")
"""The paper's pacer."""
DUAL = Numbers(
    "lambda_t",
    "debt.usd",
    "debt.scatter",
    "debt.settled",
    "target_usd",
    "unreachable",
)
"""The dual of dollars."""
NO_DUAL = (0.0, 0.0, -1.0, 0.0, 0.0, False)
"""Numbers that stand for the dual of dollars where prices are solved without it: those of a debt
before its first settlement.
"""
WINDOW = Numbers("size", "next")
"""Numbers of the window, behind the dual's; its contexts are pieces of their own."""
