"""From a state in which every arm learned alone to one in which they learn together; what they
learned is kept."""

from __future__ import annotations

import math

import numpy as np

from router_state.config import Matrix, Vector
from router_state.costs.cost_model import CostModel
from router_state.costs.ratio import LEAST_RATIO
from router_state.learning.estimating import conclude_from
from router_state.learning.evidence import evidence
from router_state.learning.linalg import symmetric_inverse
from router_state.state.router import RouterState

ROUNDING = 1e-6
"""Least eigenvalue of evidence, of sums of squares of vectors of length about 1, that may be 0."""
RIDGE = 10.0
"""Ridge of the regressions of ratios, in bills."""
BILLS_KEPT = 20.0
"""Bills that a mean of bill ÷ prediction counts for, where none was kept."""


def share(state: RouterState, *, came_back: bool = False) -> None:
    """Let the arms of a restored state conclude together from what each of them has learned.
    O(K·d³).

    Args:
        came_back: whether the arms had learned together before an older program went on: it took
            coefficients of logarithms for coefficients of ratios, so only the means are sound.
    """
    arms, knobs = state.arms, state.config.knobs
    priced = [costs for costs in arms.costs if not costs.free]
    found = [_evidence(costs, mean_only=came_back) for costs in priced]
    for costs in arms.costs:
        costs.decay, costs.smear, costs.smeared, costs.awaited = (
            1.0,
            costs.ratio if costs.free else 1.0,
            BILLS_KEPT,
            0,
        )
        if costs.free:
            costs.inverse[:], costs.w[:] = np.diag(1.0 / arms.bills.ridges), 0.0
            costs.bind(arms.stack, arms.row[costs.name.removeprefix("\x1fcost:")])
    arms.bills.resume(state.settled, [costs.watch.sigma for costs in priced])
    if priced:
        conclude_from(arms.bills, priced, *map(np.array, zip(*found, strict=True)))
    if not knobs.shared_learning or not arms.beliefs:
        return
    ridges = np.full(arms.d, knobs.ridge)
    learned = evidence(arms.beliefs, ridges=ridges, mean=np.zeros(arms.d))
    arms.rewards.resume(state.rewards_applied, [arm.watch.sigma for arm in arms])
    conclude_from(arms.rewards, arms.beliefs, *learned)


def _evidence(costs: CostModel, *, mean_only: bool) -> tuple[Matrix, Vector]:
    """Return Σ xxᵀ and Σ ln(ratio)·x of an arm that knows its mean ratio ρ, and how ratios deviate
    from it by wᵀx.

    To first order ln(ρ + wᵀx) = ln ρ + wᵀx/ρ. The older program's ridge need not be in the inverse:
    what is left may not be less than no evidence.
    """
    A = (symmetric_inverse(costs.inverse) - RIDGE * np.eye(costs.d)) * costs.decay
    values, vectors = np.linalg.eigh(A)
    # The ridge was taken off in full though forgetting had faded it: some directions went below
    # nothing.
    if values[0] < -ROUNDING:
        A = (vectors * np.maximum(values, 0.0)) @ vectors.T
    ratio = max(costs.ratio, LEAST_RATIO)
    slope = np.zeros(costs.d) if mean_only else costs.w / ratio
    # The bias carries ln ρ: contexts end with 1.0.
    slope[-1] += math.log(ratio)
    return A, A @ slope
