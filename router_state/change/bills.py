"""One bill: what it teaches its model's costs, and whether it gives a silent change of price or of
tokens away."""

from __future__ import annotations

import math

from router_state.alert import Alert
from router_state.change.detector import Shift
from router_state.config import Vector
from router_state.costs.cost_model import FIRST, LEAST_OWN, SHARE_DOWN, SHARE_UP, CostModel
from router_state.costs.ratio import MOST_FACTOR, log_total, rest_moves

LEAST_RESIDUAL = -math.log(10.0)
"""Least residual that counts: a bill far below what was expected (a call that was cut off) counts
as a tenth of it."""
LIMIT, LEAST_LIMIT = 12.0, 4.0
"""Log-likelihood ratio of an alarm for bills of up to a budget, and for the dearest ones
(benchmarks.shocks)."""
STAKE = 1.0
"""Slope of that limit in the logarithm of an expected bill, in budgets: false alarms of a model
come as rarely per request as its bills are dear, since the budget pays for so few of them."""
MOST_MEMORY = 1000.0
"""Most bills that the deviation of residuals is taken over."""
KNOWN_AFTER = 5
"""Bills from which on an expectation is more than a guess."""
KNOWN_VARIANCE = 0.25
"""xᵀA⁻¹x below which a residual says something of the model, and not of the prompt."""


def observe(
    model: CostModel,
    ratio: float,
    x: Vector | None,
    *,
    known: float | None,
    budget_usd: float | None,
    now: float,
) -> Alert | None:
    """Teach a model one bill; return an alert if the bill gave a shift away.

    Args:
        ratio: bill ÷ list price at the decision.
        x: context, shape (d,); without one only the mean learns.
        known: list price of the input tokens, in the same unit; None where they are not counted
            apart.
    """
    model.count_paid(ratio > 0.0)
    if x is None or model.free:
        model.follow(ratio)
        return None
    regression = model.regression
    exponent, spread = regression.look(x)
    alert, own = None, 1.0
    if known:
        known *= model.input_share
        own = 1.0 - known / (known + model.predict(exponent))
        if ratio > 0.0:
            model.move_share(SHARE_UP if ratio >= known else SHARE_DOWN)
    # A bill of nothing (a cached answer, a failed call) is no price: it moves the means only.
    if ratio > 0.0:
        variance = spread / regression.decay
        model.novelty.observe(spread / regression.inverse.item(-1))
        if model.bills > KNOWN_AFTER and variance < KNOWN_VARIANCE:
            residual = math.log(ratio) - (log_total(exponent, known) if known else exponent)
            shift = model.detector.observe(
                max(residual / math.sqrt(1.0 + variance * own * own), LEAST_RESIDUAL),
                limit=_limit(model.mean_usd / budget_usd if budget_usd else 0.0),
                now=now,
                centred=True,
                adaptive=True,
                memory=min(FIRST + model.bills, MOST_MEMORY),
                least=model.prior.deviation * own,
            )
            if shift is not None:
                # The expectation moves by the shift: only what is left of the residual is learned.
                moved, alert = _follow(model, shift, exponent, known, spread, now=now)
                exponent += moved
        rest = max(ratio - known, LEAST_OWN * ratio) if known else ratio
        model.learn(math.log(rest), spread, exponent)
    model.calibrate(ratio, exponent, known)
    regression.changed()
    return alert


def _limit(budgets: float) -> float:
    """Return the evidence that an alarm needs where bills are so many budgets on average.

    As in a Bayes test it falls by the logarithm of what is at stake, but one bill alone is never
    enough.
    """
    return max(LIMIT - STAKE * math.log(max(budgets, 1.0)), LEAST_LIMIT)


def _follow(
    model: CostModel,
    shift: Shift,
    exponent: float,
    known: float | None,
    spread: float,
    *,
    now: float,
) -> tuple[float, Alert | None]:
    """Let expectations follow a shift; return by how much this prompt's logarithm moved, and the
    alert if it is the model that changed."""
    moved = min(max(shift.size, -MOST_FACTOR), MOST_FACTOR)
    rest = rest_moves(moved, exponent, known or 0.0)
    regression = model.regression
    regression.journal.jumped = True
    if model.novelty.novel:
        # Prompts of a new kind cost something else: only expectations of prompts like these follow.
        # Along Vx the prompts before, to which this one is new, move least.
        regression.move_along(rest / spread)
        return rest, None
    factor = math.exp(moved)
    if known:
        model.move_share(factor)
    # In list prices, of the mean as it was: by so much a call has become dearer or cheaper.
    size = model.ratio * abs(factor - 1.0)
    model.rescale(factor, rest)
    return rest, Alert(
        kind="drift",
        model=regression.piece.removeprefix("\x1fcost:"),
        signal="cost",
        direction="up" if factor > 1.0 else "down",
        size=size,
        since=shift.since,
        observed_at=now,
        evidence={
            "factor": factor,
            "cusum": shift.evidence,
            "limit": shift.limit,
            "bills": shift.count,
        },
    )
