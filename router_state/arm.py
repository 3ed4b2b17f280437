"""One arm of a router: a model, its price, and what was learned of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from router_state.change.detector import SUSPICION_SIZE, WATCH_SIZE, Suspicion, Watch
from router_state.config import Price, Vector
from router_state.costs.cost_model import CostModel
from router_state.journal import Journal
from router_state.learning.linalg import floats, packed
from router_state.learning.regression import Belief
from router_state.learning.shared_prior import Pool
from router_state.state.framing import Json

LOG_PRICE_FLOOR, LOG_PRICE_CEILING = np.log(1e-4), np.log(0.1)
"""Ends of the paper's scale of list prices, in $ per 1k tokens (ParetoBandit Eq. 6)."""


def log_price(per_1k: float) -> float:
    """Place a list price ($ per 1k tokens) on the paper's logarithmic scale: 0 at 1e-4, 1 at 0.1,
    clipped (Eq. 6)."""
    position = (np.log(max(per_1k, 1e-4)) - LOG_PRICE_FLOOR) / (LOG_PRICE_CEILING - LOG_PRICE_FLOOR)
    return float(min(1.0, max(0.0, position)))


class Arm:
    """One model: its price, what was learned of its rewards and of its bills, and whether it has
    drifted.

    Attributes:
        price: list price in force; per_1k, log_price: derived of it.
        belief: of its rewards; costs: of its bills.
        watch: looks out for a drift of its rewards; suspicion: what is assumed since one was found,
            or None.
        pulls_left: onboarding pulls still to make.
        retired_at: since when it takes no new traffic (bills and rewards in flight still settle),
            or None.
    """

    __slots__ = (
        "_journal",
        "belief",
        "costs",
        "log_price",
        "name",
        "per_1k",
        "price",
        "pulls_left",
        "retired_at",
        "suspicion",
        "watch",
    )

    suspicion: Suspicion | None

    def __init__(
        self,
        name: str,
        bills: Pool,
        price: Price,
        journal: Journal,
        *,
        now_t: int = 0,
        pulls: int = 0,
    ) -> None:
        self.name, self._journal = name, journal
        self.belief = Belief(name, bills.d, journal, now_t=now_t)
        self.costs = CostModel(name, bills, price, journal)
        self.watch, self.suspicion = Watch(), None
        self.pulls_left = pulls
        self.retired_at: float | None = None
        self.set_price(price)

    def set_price(self, price: Price) -> None:
        """Note a list price and what follows from it."""
        self.price, self.per_1k, self.log_price = price, price.per_1k, log_price(price.per_1k)

    def test_suspicion(self, x: Vector, reward: float) -> None:
        """Hold a reward for context x, shape (d,), against what is assumed since it may have
        drifted."""
        if self.suspicion is not None:
            self.suspicion.observe(
                predicted=float(self.belief.theta.dot(x)), reward=reward, sigma=self.watch.sigma
            )
            self._journal.pieces.add(self.name)

    def scalars(self) -> list[float | None]:
        """Return what the head keeps of it, in the order of `SCALARS`."""
        belief, costs = self.belief, self.costs
        return [
            belief.decay,
            belief.forgotten,
            belief.last_update,
            belief.last_played,
            self.pulls_left,
            belief.pending,
            costs.ratio,
            costs.bills,
            self.retired_at,
        ]

    def restore(self, scalars: Sequence[Json]) -> None:
        """Invert `scalars`."""
        belief, costs = self.belief, self.costs
        (
            belief.decay,
            belief.forgotten,
            belief.last_update,
            belief.last_played,
            self.pulls_left,
            belief.pending,
            costs.ratio,
            costs.bills,
            self.retired_at,
        ) = scalars

    def pack(self) -> bytes:
        """Return its piece: the belief's arrays, the watch, and the suspicion if there is one."""
        suspicion = [] if self.suspicion is None else self.suspicion.pack()
        return packed(*self.belief.pack(), [*self.watch.pack(), *suspicion])

    def unpack(self, data: bytes) -> None:
        """Invert `pack`; the scalars are restored. Raises CorruptSnapshot."""
        size = self.belief.packed_size()
        values = floats(data, least=size + WATCH_SIZE, most=size + WATCH_SIZE + SUSPICION_SIZE)
        belief, watch, suspicion = np.split(values, (size, size + WATCH_SIZE))
        self.belief.unpack(belief)
        self.watch = Watch.unpack(watch.tolist())
        self.suspicion = Suspicion.unpack(suspicion.tolist()) if len(suspicion) else None


SCALARS = (
    "decay",
    "forgotten",
    "last_update",
    "last_played",
    "pulls_left",
    "pending",
    "ratio",
    "bills",
    "retired_at",
)
"""Order of `Arm.scalars` in a head, for good: a head holds values without names."""
