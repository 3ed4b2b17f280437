"""The last contexts of a router, over which the dual variable is solved."""

from libc.math cimport sqrt

from functools import cache
import msgspec
import numpy as np
import orjson

from router_state.kernel.choosing.portfolio cimport Portfolio
from ground.refusing import DamagedState
from router_state.kernel.numbers.randomness cimport Chance
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, known, singles
from router_state.kernel.pacing.window_scores cimport BLOCK
from router_state.kernel.pacing.window_scores import options

LIMITED = msgspec.json.Decoder(dict[int, list[str]])
"""Decoder of the models that the requests of a block were limited to."""

cdef enum:
    WINDOW = 128
"""Number of last requests over which λ_t is solved; from 32 to 512 it makes no difference
(lab/docs/mechanisms.md).
"""
cdef Real CLOSED = 1e6
"""Cost in dollars of an arm that can't be chosen; its score is −`CLOSED`. No reward is worth this
cost, and no price makes it cheap.
"""
cdef Real PRICE_SPREAD = 0.1
"""Share of λ_t by which the prices of single requests differ. Where all prompts are alike, the
winners at two prices then mix in the shares that meet the budget; with one price, one model would
be called until the next solution (benchmarks.elsewhere, tasks).
"""


def _spread(Real step):
    """Return the price of each slot, as a multiple of λ_t."""
    own = 1.0 + PRICE_SPREAD * (2.0 * (np.arange(WINDOW) * step % 1.0) - 1.0)
    return np.asarray(own, np.float64)


PRICES = _spread((sqrt(5.0) - 1.0) / 2.0)
"""Price of a dollar of each slot's request, as a multiple of λ_t: multiples of the golden ratio,
modulo 1, fill every stretch of requests evenly (Weyl 1916)."""
PRICE_OF = tuple(PRICES.tolist())
"""The same numbers, for one decision at a time."""
WAIT_PRICES = _spread(sqrt(2.0) - 1.0)
"""Price of a wait of each slot's request, as a multiple of the common price, see `latency`. As
both prices differ between requests, equal requests can mix three models.
"""
PIECES = tuple(f"\x1fwindow{i}" for i in range(WINDOW // BLOCK))
"""Names of the blocks' pieces: an event writes only the block of its slot."""


@cache
def lots(K):
    """Return a standard normal number for each slot and arm, shape (WINDOW·K,); the second half is
    the negative of the first.

    These numbers stand in for the draws of choices. No choice uses one of them as its own draw, so
    λ_t does not depend on the draw of a choice.
    """
    half = np.array(Chance().standard_normal(WINDOW // 2 * K))
    return np.concatenate([half, -half])


cdef class Window:
    """A ring of the last 128 contexts, in single precision. Scores and expected costs are computed
    anew for every solution.

    Attributes:
        d: dimensions.
        contexts: blocks of eight contexts, which stand side by side in a block, shape (n, d, 8); n
            doubles with the slots in use, up to 16: most of 10,000 routers have few. `held` is the
            kernel's view of it, with room for `room` contexts.
        limited: by slot, the models that a request was limited to, if it was.
        size: slots in use; next: the slot that is written next.
    """

    def __init__(self, d, journal):
        self.journal, self.written, self.d = journal, journal.pieces, d
        self._hold(np.zeros((1, d, BLOCK), dtype=np.float32))
        self.limited = {}
        self.size = 0
        self.next = 0

    @property
    def pieces(self):
        """Names of the pieces that hold the window's contexts."""
        return PIECES[: -(-self.size // BLOCK)]

    def rows(self):
        """Return the contexts by slot, shape (n, d), a copy."""
        return np.ascontiguousarray(self.contexts.transpose(0, 2, 1)).reshape(-1, self.d)

    cpdef Index push(self, x, limited_to):
        """Store a context in place of the oldest one; return its slot."""
        slot, d = self.next, self.d
        context: Floats = known(x, d)
        if not 0 <= slot < WINDOW:
            raise IndexError(f"there is no slot {slot}")
        if slot >= self.room:
            self.reserve(slot + 1)
        place: Index = slot // BLOCK * BLOCK * d + slot % BLOCK
        for i in range(d):
            self.held[place + BLOCK * i] = context[i]
        if limited_to is not None:
            self.limited[slot] = limited_to
        elif self.limited:
            self.limited.pop(slot, None)
        self.next = (slot + 1) % WINDOW
        if self.size < WINDOW:
            self.size += 1
        self.written.add(PIECES[slot // BLOCK])
        return slot

    cdef void _hold(self, contexts):
        self.contexts, self.room = contexts, BLOCK * len(contexts)
        self.held = singles(contexts, self.room * self.d)

    def reserve(self, slots):
        """Make room for `slots` contexts."""
        room = self.room
        while room < min(slots, WINDOW):
            room *= 2
        if room > self.room:
            larger = np.zeros((room // BLOCK, self.d, BLOCK), dtype=np.float32)
            larger[: len(self.contexts)] = self.contexts
            self._hold(larger)

    def options(self, Portfolio arms, tokens, *, Flag drawn=True):
        """Return scores, and expected dollars times each request's price, of every arm for every
        context, as if every arm took traffic. Scores contain a draw only if `drawn`.

        Args:
            tokens: by slot, the input tokens that are priced apart, shape (128,).
        """
        costs = arms.costs
        return options(
            self.contexts,
            self.size,
            arms.d,
            rewards=arms.regressions,
            deviations=arms.sample.deviations() if drawn else [0.0] * len(costs),
            lots=lots(len(costs)),
            shifts=[arm.offset for arm in arms.all] if arms.suspect else None,
            models=costs,
            tokens=tokens,
            prices=PRICES,
        )

    def close(self, Portfolio arms, scores, costs):
        """Close arms where they could not be chosen. Where all models that a request allowed are
        gone, every arm stays open.
        """
        closed = [k for k, arm in enumerate(arms.all) if arm.retired_at is not None]
        if closed:
            scores[:, closed], costs[:, closed] = -CLOSED, CLOSED
        for slot, models in self.limited.items():
            shut = [k for k, name in enumerate(arms.names) if name not in models]
            if len({*closed, *shut}) < len(arms.all):
                scores[slot, shut], costs[slot, shut] = -CLOSED, CLOSED

    def pack(self, block):
        """Return eight contexts and what their requests were limited to."""
        start = block * BLOCK
        contexts = self.contexts[block].T.astype("<f4", copy=False).tobytes()
        held = [i for i in range(BLOCK) if start + i in self.limited] if self.limited else []
        limited = {str(i): sorted(self.limited[start + i]) for i in held}
        return contexts + orjson.dumps(limited) if limited else contexts

    def unpack(self, block, bytes data):
        """Invert `pack`. Raises DamagedState."""
        start, size = block * BLOCK, BLOCK * self.d * 4
        if len(data) < size:
            raise DamagedState(f"a block of contexts has {len(data)} bytes, not {size}")
        self.reserve(start + BLOCK)
        self.contexts[block] = np.frombuffer(data[:size], "<f4").reshape(BLOCK, -1).T
        try:
            limited = LIMITED.decode(data[size:]) if len(data) > size else {}
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DamagedState(f"a block of contexts: {error}") from None
        if not all(0 <= i < BLOCK for i in limited):
            raise DamagedState(f"a block of {BLOCK} contexts limits {sorted(limited)}")
        self.limited.update({start + i: frozenset(models) for i, models in limited.items()})


# For Python, which does not see numbers of C.
globals().update(WINDOW=WINDOW, BLOCK=BLOCK, CLOSED=CLOSED, PRICE_SPREAD=PRICE_SPREAD)
