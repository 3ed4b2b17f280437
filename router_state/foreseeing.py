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

from router_state.arms import Arms
from router_state.learning.estimating import Part, estimated
from router_state.learning.stack import WIDE
from router_state.state.router import RouterState

TOGETHER = 48
"""Regressions in one pass: at d = 26 their arrays stay in a processor's cache (eight routers with
three models take 0.6 of the time of one by one, 16 at once no less than 4)."""


@contextmanager
def foreseen(states: Iterable[RouterState]) -> Iterator[None]:
    """Have ready what the next decision of each router needs; at the end what was not needed is
    forgotten. In between only requests are applied."""
    ready: list[Arms] = []
    try:
        for together in _in_passes(states):
            owners = {id(part.pool): arms for arms, _, parts in together for part in parts}
            found = defaultdict(list)
            try:
                conclusions = estimated([part for _, _, parts in together for part in parts])
            except (ArithmeticError, LinAlgError):
                continue  # alone each says for itself what is wrong
            for conclusion in conclusions:
                found[id(owners[id(conclusion.pool)])].append(conclusion)
            for arms, t, _ in together:
                arms.foresee(t, found[id(arms)])
                ready.append(arms)
        yield
    finally:
        for arms in ready:
            arms.forget_foreseen()


def _in_passes(states: Iterable[RouterState]) -> Iterator[list[tuple[Arms, int, list[Part]]]]:
    """Yield routers of equal dimensions for whom something is due, with their clocks, as many as
    one pass takes; none that would be alone."""
    waiting: dict[int, list[tuple[Arms, int, list[Part]]]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    for state in {id(state): state for state in states}.values():
        arms, knobs = state.arms, state.config.knobs
        # Of many dimensions the arithmetic is the cost, and rows may be pending.
        if arms.d >= WIDE:
            continue
        parts = arms.due(t=state.t, gamma=knobs.gamma, shared=knobs.shared_learning)
        if not parts:
            continue
        size = sum([len(part.regressions) for part in parts])
        if waiting[arms.d] and sizes[arms.d] + size > TOGETHER:
            yield waiting.pop(arms.d)
            sizes[arms.d] = 0
        waiting[arms.d].append((arms, state.t, parts))
        sizes[arms.d] += size
    yield from [together for together in waiting.values() if len(together) > 1]
