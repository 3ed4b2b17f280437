"""The last contexts of a router: what the dual variable is solved over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from router_state.arms import Arms
from router_state.config import Matrix, Vector
from router_state.cost_model import SPAN
from router_state.errors import NonFiniteInput

LENGTH = 128
BLOCK = 8
CLOSED_SCORE, CLOSED_COST = -1e6, 1e6
PIECES = tuple(f"\x1fwindow{i}" for i in range(LENGTH // BLOCK))


class Window:
    """A ring of the last 128 contexts, in single precision; scores and expected costs are computed anew whenever they are needed.

    Attributes:
        contexts: shape (128, d).
        limited: by slot, the models that a request was limited to, if it was.
        size: slots in use; next: the slot that is written next.
    """

    __slots__ = ("contexts", "limited", "next", "size")

    def __init__(self, d: int) -> None:
        self.contexts: npt.NDArray[np.float32] = np.zeros((LENGTH, d), dtype=np.float32)
        self.limited: dict[int, frozenset[str]] = {}
        self.size = 0
        self.next = 0

    def push(self, x: Vector, limited_to: frozenset[str] | None = None) -> int:
        """Take a context in for the oldest one; return its slot."""
        slot = self.next
        self.contexts[slot] = x
        if limited_to is not None:
            self.limited[slot] = limited_to
        elif self.limited:
            self.limited.pop(slot, None)
        self.next = (slot + 1) % LENGTH
        if self.size < LENGTH:
            self.size += 1
        return slot

    def candidates(self, arms: Arms) -> tuple[Matrix, Matrix]:
        """Return scores and expected costs in dollars of every arm for every context, shape (size, K), as they are known now.

        An arm that a request could not be given to can't win there; where all that it could be given to are gone, any may.
        """
        d, n, K = arms.d, self.size, len(arms)
        # Whether values are finite is looked at, not what flags the processor has: kernels of a BLAS set them for lanes of a
        # register that no result comes from.
        with np.errstate(all="ignore"):
            both = self.contexts[:n].dot(arms.stack[:, d:].reshape(2 * K, d).astype(np.float32).T)
        if not np.isfinite(both).all():
            raise NonFiniteInput("a context of the window, or what an arm has learned, is not finite")
        scores, costs = both[:, 0::2].astype(np.float64), both[:, 1::2].astype(np.float64)
        if arms.suspect:
            scores += [0.0 if suspicion is None else suspicion.offset for suspicion in arms.suspicion]
        ratios = np.array(arms.ratio)
        costs += ratios
        np.maximum(costs, ratios / SPAN, out=costs)
        np.minimum(costs, ratios * SPAN, out=costs)
        costs *= arms.list_price
        closed = [k for k, at in enumerate(arms.retired_at) if at is not None]
        if closed:
            scores[:, closed], costs[:, closed] = CLOSED_SCORE, CLOSED_COST
        for slot, models in self.limited.items():
            shut = [k for k, name in enumerate(arms.names) if name not in models]
            if len({*closed, *shut}) < len(arms):
                scores[slot, shut], costs[slot, shut] = CLOSED_SCORE, CLOSED_COST
        return scores, costs
