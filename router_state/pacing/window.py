"""The last contexts of a router: what the dual variable is solved over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import orjson

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Matrix, Vector
from router_state.costs.ratio import MOST_EXPONENT
from router_state.errors import CorruptSnapshot, NonFiniteInput

LENGTH = 128
"""Contexts that λ_t is solved over; from 32 to 512 it makes no difference (docs/algorithm.md)."""
BLOCK = 8
"""Contexts of one piece: what eight decisions write."""
CLOSED_SCORE, CLOSED_COST = -1e6, 1e6
"""Of an arm that can't be chosen: no reward is worth it, no price makes it cheap."""
PRICE_SPREAD = 0.1
"""Share of λ_t within which every request has a price of its own: where all prompts are alike the
winners of two prices mix, in the share that meets the budget, instead of one being called until the
next solution (benchmarks.elsewhere, tasks)."""
GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, fill every stretch of requests evenly (Weyl 1916)."""
PRICES = 1.0 + PRICE_SPREAD * (2.0 * (np.arange(LENGTH) * GOLDEN % 1.0) - 1.0)
"""By slot, what its request's price of a dollar is to λ_t."""
PIECES = tuple(f"\x1fwindow{i}" for i in range(LENGTH // BLOCK))
"""Names of the blocks' pieces: an event writes the block of its slot alone."""


class Window:
    """A ring of the last 128 contexts, in single precision; scores and expected costs are computed
    anew whenever they are needed.

    Attributes:
        contexts: shape (n, d); n doubles with the slots in use, up to 128: most of 10,000 routers
            have few.
        limited: by slot, the models that a request was limited to, if it was.
        size: slots in use; next: the slot that is written next.
    """

    __slots__ = ("_journal", "contexts", "limited", "next", "size")

    def __init__(self, d: int, journal: Journal) -> None:
        self._journal = journal
        self.contexts: npt.NDArray[np.float32] = np.zeros((BLOCK, d), dtype=np.float32)
        self.limited: dict[int, frozenset[str]] = {}
        self.size = 0
        self.next = 0

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of the pieces that hold its contexts."""
        return PIECES[: -(-self.size // BLOCK)]

    def push(self, x: Vector, limited_to: frozenset[str] | None = None) -> int:
        """Take a context in for the oldest one; return its slot."""
        slot = self.next
        if slot >= len(self.contexts):
            self.reserve(slot + 1)
        self.contexts[slot] = x
        if limited_to is not None:
            self.limited[slot] = limited_to
        elif self.limited:
            self.limited.pop(slot, None)
        self.next = (slot + 1) % LENGTH
        if self.size < LENGTH:
            self.size += 1
        self._journal.pieces.add(PIECES[slot // BLOCK])
        return slot

    def reserve(self, slots: int) -> None:
        """Have room for so many contexts."""
        capacity = len(self.contexts)
        while capacity < min(slots, LENGTH):
            capacity *= 2
        if capacity > (held := len(self.contexts)):
            larger = np.zeros((capacity, self.contexts.shape[1]), dtype=np.float32)
            larger[:held] = self.contexts
            self.contexts = larger

    @property
    def price(self) -> float:
        """What the last request's own price of a dollar is to λ_t."""
        return PRICES.item(self.next - 1)

    def candidates(self, arms: Arms) -> tuple[Matrix, Matrix]:
        """Return scores, and expected costs in dollars by each request's price, of every arm for
        every context, shape (size, K).

        All as it is known now.

        An arm that a request could not be given to can't win there; where all that it could be
        given to are gone, any may.
        """
        d, n, K = arms.d, self.size, len(arms)
        # Whether values are finite is looked at, not what flags the processor has: kernels of a
        # BLAS set them for lanes of a register that no result comes from.
        with np.errstate(all="ignore"):
            # As the choices see it, with the draw in force; in single precision, as the contexts
            # are kept. Rows d and d + 1 of each arm are the θ of rewards and of bills, so that one
            # product gives scores and costs.
            coefficients = arms.stack.blocks[:, d : d + 2].astype(np.float32)
            coefficients[:, 0] += arms.sample.offsets
            both = self.contexts[:n].dot(coefficients.reshape(2 * K, d).T)
        if not np.logical_and.reduce(np.isfinite(both), axis=None):
            raise NonFiniteInput(
                "a context of the window, or what an arm has learned, is not finite"
            )
        scores = both[:, 0::2].astype(np.float64)
        if arms.suspect:
            scores += [arm.offset for arm in arms]
        costs = both[:, 1::2].astype(np.float64)
        costs += [0.5 * model.level for model in arms.costs]
        np.clip(costs, -MOST_EXPONENT, MOST_EXPONENT, out=costs)
        np.exp(costs, out=costs)
        costs *= [model.factor * model.list_price for model in arms.costs]
        if arms.tokens.in_use:
            per_token = [0.0 if m.free else m.per_input_token for m in arms.costs]
            costs += np.outer(arms.tokens.slots[:n], per_token)
            for slot, saved in arms.caching.slots.items():
                for name, tokens in saved.items():
                    if (k := arms.row.get(name)) is not None:
                        costs[slot, k] = max(costs[slot, k] - tokens * per_token[k], 0.0)
        costs *= [1.0 if model.free else model.paid for model in arms.costs]
        costs *= PRICES[:n, None]
        if self.limited or arms.open is None:
            self._close(arms, scores, costs)
        return scores, costs

    def _close(self, arms: Arms, scores: Matrix, costs: Matrix) -> None:
        """Let no arm win where it could not be chosen."""
        closed = [k for k, arm in enumerate(arms) if arm.retired_at is not None]
        if closed:
            scores[:, closed], costs[:, closed] = CLOSED_SCORE, CLOSED_COST
        for slot, models in self.limited.items():
            shut = [k for k, name in enumerate(arms.names) if name not in models]
            if len({*closed, *shut}) < len(arms):
                scores[slot, shut], costs[slot, shut] = CLOSED_SCORE, CLOSED_COST

    def pack(self, block: int) -> bytes:
        """Return eight contexts and what their requests were limited to."""
        start = block * BLOCK
        limited = {
            str(i): sorted(self.limited[start + i])
            for i in range(BLOCK)
            if start + i in self.limited
        }
        contexts = self.contexts[start : start + BLOCK].astype("<f4", copy=False).tobytes()
        return contexts + (orjson.dumps(limited) if limited else b"")

    def unpack(self, block: int, data: bytes) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        start, size = block * BLOCK, BLOCK * self.contexts.shape[1] * 4
        if len(data) < size:
            raise CorruptSnapshot(f"a block of contexts has {len(data)} bytes, not {size}")
        self.reserve(start + BLOCK)
        self.contexts[start : start + BLOCK] = np.frombuffer(data[:size], "<f4").reshape(BLOCK, -1)
        try:
            limited = orjson.loads(data[size:]) if len(data) > size else {}
        except orjson.JSONDecodeError as error:
            raise CorruptSnapshot(str(error)) from None
        self.limited.update({start + int(i): frozenset(models) for i, models in limited.items()})
