"""Check the invariants of a state, as a checksum proves bytes, not values. Tests call `check`
after each event, and a worker with PB_VALIDATE_STATE after each group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from router_state.costs.input_tokens import IN_USE_FROM
from router_state.kernel import (
    RIDGE_FLOOR,
    WINDOW,
    Arm,
    Regression,
    SharedPrior,
    list_price_of,
)
from router_state.pacing.dollar_dual import UNREACHABLE, DollarDual
from router_state.pacing.ema_pacer import LAMBDA_MAX, EmaPacer
from router_state.packing import layout
from router_state.record import RequestRecord
from router_state.router import RouterState


def check(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    """Raise AssertionError naming the first invariant that does not hold. Takes O(requests +
    K·d³): not for the hot path.
    """
    for fault in (*faults(state), *_derived(state), *_books(state, records)):
        raise AssertionError(fault)


def faults(state: RouterState) -> Iterator[str]:
    """Yield the faults of a state, without its requests. O(K·d³)."""
    arms = state.arms
    numbers = (*layout.COUNTERS.of(state), *layout.RESTS.of(state))
    for name, value in zip((*layout.COUNTERS.names, *layout.RESTS.names), numbers, strict=True):
        is_sum = name.endswith(("usd", "rest")) or name == "latest"
        if not (_finite(value) if is_sum else _count(value)):
            yield name
    if len(set(arms.names)) != len(arms) or not all(map(_is_name, arms.names)):
        yield "names of models"
    for one in state.capabilities:
        yield from one.faults()
    for prior in (arms.rewards, arms.bills):
        if not _is_prior(prior):
            yield f"prior {prior.name.strip()}"
    for arm in arms:
        for fault in _arm(arm, t=state.t):
            yield f"{fault} of {arm.name}"
    yield from _regressions("rewards", {arm.name: arm.rewards for arm in arms})
    yield from _regressions("bills", {arm.name: arm.costs.regression for arm in arms})
    sample = arms.sample
    if not (np.isfinite(sample.array).all()):
        yield "posterior sample"
    yield from _pacer(state)


def _arm(arm: Arm, *, t: int) -> Iterator[str]:
    costs, suspicion, price = arm.costs, arm.suspicion, arm.price
    if not (_count(arm.last_played) and max(arm.rewards.last_update, arm.last_played) <= t):
        yield "clock"
    if not _count(arm.pulls_left, costs.awaited):
        yield "pulls"
    if arm.retired_at is not None and not _finite(arm.retired_at):
        yield "retirement"
    if not (0.0 <= price.input_price_per_m <= 1e6 and 0.0 <= price.output_price_per_m <= 1e6):
        yield "price"
    if not (_finite(arm.rewards.forgotten) and arm.rewards.forgotten >= 0.0):
        yield "forgetting"
    numbers = layout.COSTS.of(arm)
    if not (_finite(*numbers) and min(costs.ratio, costs.bills, costs.calibration) >= 0.0):
        yield "costs"
    if not (0.0 < costs.input_share <= 1.0 and 0.0 < costs.paid <= 1.0):
        yield "input tokens"
    if not _finite(*layout.REWARDS.of(arm)) or min(arm.detector.sigma, costs.detector.sigma) < 0.0:
        yield "detector"
    if suspicion is not None and not (
        _finite(*layout.SUSPICION.of(suspicion)) and min(suspicion.count, suspicion.after) >= 0
    ):
        yield "suspicion"


def _pacer(state: RouterState) -> Iterator[str]:
    pacer = state.pacer
    if not state.config.paces and pacer.budget_usd != state.config.budget_usd_per_request:
        yield "another budget than was declared"
    if isinstance(pacer, EmaPacer) and not (
        0.0 <= pacer.lambda_t <= LAMBDA_MAX and 0.0 <= pacer.cost_ema_usd < math.inf
    ):
        yield "λ_t"
    if isinstance(pacer, DollarDual):
        if not 0.0 <= pacer.lambda_t <= UNREACHABLE:
            yield "λ_t"
        if not (_finite(*layout.DUAL.of(pacer)) and pacer.debt.settled >= 0.0):
            yield "debt"
    window = state.arms.window
    if (window is not None) != (pacer.solves or state.arms.beside is not None):
        yield "a window without a price to solve, or none for one"
    if window is not None:
        if not (_count(window.size, window.next) and window.size <= WINDOW > window.next):
            yield "window"
        if not np.isfinite(window.contexts).all():
            yield "contexts of the window"
        if not all(0 <= slot < window.size for slot in window.limited):
            yield "limits of the window"
    size = 0 if window is None else window.size
    if not all(0 <= slot < size for one in state.arms.slotted for slot in one.slots):
        yield "slots of the window"


def _derived(state: RouterState) -> Iterator[str]:
    """Yield cached values that differ from their derivation."""
    arms = state.arms
    for arm in arms:
        if arm.rewards.decay < RIDGE_FLOOR:
            yield f"{arm.name}: less than a tenth of the prior is left"
        if arm.per_1k != arm.price.per_1k or arm.costs.list_price != list_price_of(arm.price):
            yield f"{arm.name}: the price is stale"
    if arms.tokens.in_use != (arms.tokens.count >= IN_USE_FROM):
        yield "tokens are in use too early or late"
    names = ("row", "names", "open", "highest_per_1k", "onboarding", "suspect")
    # Values are derived again and compared, so that a stale cache shows.
    before = [getattr(arms, name) for name in names]
    arms.derive()
    for name, value in zip(names, before, strict=True):
        if getattr(arms, name) != value:
            yield f"{name} is stale"


def _books(state: RouterState, records: Mapping[str, RequestRecord]) -> Iterator[str]:
    # A worker unpacks a record each time that it is asked for.
    gone, held = state.forgotten, dict(records)
    requests = held.values()
    numbers = {record.seq for record in requests}
    if not len(numbers) == len(requests) == state.seq - gone.requests or not all(
        1 <= n <= state.seq for n in numbers
    ):
        yield "seq has gaps"
    bills = [record.bill.cost_usd for record in requests if record.bill is not None]
    if state.settled != len(bills) + gone.bills:
        yield "settled is not the number of bills"
    if not _same(state.spend_usd, math.fsum([gone.spend_usd, *bills])):
        yield "spend is not the sum of the bills"
    awaited = {request_id: r for request_id, r in held.items() if r.is_awaited}
    if list(state.open_commitments) != sorted(awaited, key=lambda one: awaited[one].seq):
        yield "open commitments"
    if not _same(state.committed_usd, math.fsum(r.awaited_usd for r in awaited.values())):
        yield "committed is not what is awaited"
    if state.rewards_applied != sum(r.label is not None for r in requests) + gone.rewards:
        yield "rewards_applied is not the number of labels"


def _is_prior(prior: SharedPrior) -> bool:
    numbers = layout.SHARED.of(prior)
    arrays = np.isfinite(prior.mean).all() and np.isfinite(prior.center).all()
    return bool(arrays) and _finite(*numbers) and min(numbers[:4]) > 0.0 <= min(numbers[4:])


def _regressions(what: str, of: Mapping[str, Regression]) -> Iterator[str]:
    """Yield the regressions whose V is not positive definite, or whose numbers are not finite: a
    variance would not be positive.
    """
    # All matrices at once take a fifth of the time; a fault is looked for one by one.
    if not _are_regressions([*of.values()]):
        for name, one in of.items():
            if not _are_regressions([one]):
                yield f"regression of {what} of {name}"


def _are_regressions(several: Sequence[Regression]) -> bool:
    if not all(0.0 < one.decay <= 1.0 and np.isfinite(one.kept).all() for one in several):
        return False
    try:
        np.linalg.cholesky([one.V() for one in several])
    except np.linalg.LinAlgError:
        return False
    return True


def _finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _count(*values: int) -> bool:
    # A bool is an int in Python, and 1.0 equals 1: a count must be neither bool nor float.
    return all(type(value) is int and value >= 0 for value in values)


def _same(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-12)


def _is_name(name: str) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= 200 and name.isprintable()
