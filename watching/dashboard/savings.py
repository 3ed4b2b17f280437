"""Compute what routing saves against the dearest model, and against the cheapest fixed mix of
models that would be as good.
"""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]
"""Mean cost in dollars, mean quality."""


def against_dearest(cost_usd: float, models: Sequence[Point]) -> float | None:
    """Return the share of the dearest model's cost that is saved; negative where more is spent."""
    dearest = max((cost for cost, _ in models), default=0.0)
    return 1.0 - cost_usd / dearest if dearest > 0.0 else None


def mix_cost(quality: float, models: Sequence[Point]) -> float | None:
    """Return the least cost at which a fixed mix of models reaches a quality; None: no mix does.

    A mix sends every request to one of the models by a coin, whatever the request: its points are
    the upper hull of the models' points, and the cheapest one is on an edge.
    """
    reached = [cost for cost, level in models if level >= quality]
    # Any two models whose qualities lie on either side: the share of the dearer one reaches it
    # exactly.
    for cost, level in models:
        for dearer, higher in models:
            if level < quality < higher:
                share = (quality - level) / (higher - level)
                reached.append(cost + share * (dearer - cost))
    return min(reached, default=None)
