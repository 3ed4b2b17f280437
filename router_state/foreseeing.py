"""Estimate for many routers at once what their next decisions need.

An estimate of three models is a hundred calls of numpy on small arrays. Young routers need one
before nearly every decision; over the arrays of some of them one call costs little more than over
those of one. What is estimated is the same to the bit, and is taken over by the decision only: a
request that is refused leaves no trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from numpy.linalg import LinAlgError

from router_state.learning.estimating import Conclusion, Part, estimated
from router_state.learning.stack import WIDE
from router_state.policies.live import due
from router_state.state.router import NOTHING_FORESEEN, RouterState

TOGETHER = 48
"""Regressions in one pass: at d = 26 their arrays stay in a processor's cache (eight routers with
three models take 0.6 of the time of one by one, 16 at once no less than 4)."""
Waiting = list[tuple[RouterState, list[Part]]]
"""Routers, and what is due for each."""


@contextmanager
def foreseen(states: Iterable[RouterState]) -> Iterator[None]:
    """Have ready what the next decision of each router needs; at the end what was not needed is
    forgotten. In between only requests are applied."""
    ready: list[RouterState] = []
    try:
        for together in _in_passes(states):
            found: dict[int, list[Conclusion]] = defaultdict(list)
            try:
                conclusions = estimated([part for _, parts in together for part in parts])
            except (ArithmeticError, LinAlgError):
                continue  # alone each says for itself what is wrong
            for conclusion in conclusions:
                found[id(conclusion.prior)].append(conclusion)
            for state, parts in together:
                mine = [one for part in parts for one in found[id(part.prior)]]
                state.foreseen = state.learned, mine
                ready.append(state)
        yield
    finally:
        for state in ready:
            state.foreseen = NOTHING_FORESEEN


def _in_passes(states: Iterable[RouterState]) -> Iterator[Waiting]:
    """Yield routers of equal dimensions for whom something is due, as many as one pass takes; none
    that would be alone."""
    waiting: dict[int, Waiting] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    for state in {id(state): state for state in states}.values():
        d, parts = state.arms.d, due(state)
        # Of many dimensions the arithmetic is the cost, and rows may be pending.
        if d >= WIDE or not parts:
            continue
        size = sum([len(part.regressions) for part in parts])
        if waiting[d] and sizes[d] + size > TOGETHER:
            yield waiting.pop(d)
            sizes[d] = 0
        waiting[d].append((state, parts))
        sizes[d] += size
    yield from [together for together in waiting.values() if len(together) > 1]
