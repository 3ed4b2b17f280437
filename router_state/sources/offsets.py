"""Estimate by how much a judge's labels of each model are above gold, from pairs of all models.

A model's offset is c + e: c is the same for all models, e is the model's own. c ~ N(0, `COMMON`²)
and e ~ N(0, τ²). The pairs decide among the `SCATTERS` for τ: each one's share is its prior
probability × the likelihood of the pairs, and the estimate is the mean over them. With τ = 0 the
judge favours no model, so the labels of a judge who favours none are left nearly as they are.

The priors were chosen on seeds 0 to 99 of `benchmarks.sources`, and measured on others
(lab/docs/sources.md). A centre that is free, in place of one near 0, loses most of the gain: a
favoured model gets most requests and so most pairs, and its offset is taken for that of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from router_state.kernel import exp_of, log_of

COMMON = 0.05
"""Deviation of the offset that all models share: scales of two sources differ by so much."""
SCATTERS = ((0.0, 0.5), (0.03, 0.2), (0.1, 0.2), (0.2, 0.1))
"""Deviations τ of the models' own offsets, each with its prior probability."""
SPREAD, SPREAD_PAIRS = 0.15, 4.0
"""Deviation of a pair's difference before any pair, and how many pairs that counts for."""


class Differences(NamedTuple):
    """Pairs of one model: how many, the sum of their differences, and that of the squares."""

    n: int
    sum: float
    squares: float

    @property
    def mean(self) -> float:
        """The mean difference; 0 without a pair."""
        return self.sum / self.n if self.n else 0.0


class _Fit(NamedTuple):
    """One scatter: log of its share of the probability, the common offset, and by model the share
    of its own offset that is believed."""

    log_share: float
    common: float
    believed: dict[str, float]


def offsets(pairs: Mapping[str, Differences]) -> tuple[float, dict[str, float]]:
    """Return the offset of a model without a pair, and those of the models with pairs.

    Args:
        pairs: differences, the judge's label less gold, by model.
    """
    seen = {model: one for model, one in pairs.items() if one.n > 0}
    if not seen:
        return 0.0, {}
    variance = _variance(list(seen.values()))
    fits = [_fit(seen, variance, tau, prior) for tau, prior in SCATTERS]
    most = max(fit.log_share for fit in fits)
    shares = [exp_of(fit.log_share - most) for fit in fits]
    total = sum(shares)
    weighed = [(share / total, fit) for share, fit in zip(shares, fits, strict=True)]
    common = sum(share * fit.common for share, fit in weighed)
    return common, {
        model: sum(
            share * (fit.common + fit.believed[model] * (one.mean - fit.common))
            for share, fit in weighed
        )
        for model, one in seen.items()
    }


def _variance(seen: list[Differences]) -> float:
    """Return the variance of a difference around the mean of its model."""
    squares = sum(max(one.squares - one.n * one.mean**2, 0.0) for one in seen)
    count = sum(one.n - 1 for one in seen)
    return (SPREAD_PAIRS * SPREAD**2 + squares) / (SPREAD_PAIRS + count)


def _fit(seen: Mapping[str, Differences], variance: float, tau: float, prior: float) -> _Fit:
    # The means have the covariance diag(v + τ²) + COMMON²·11ᵀ, inverted by Sherman–Morrison.
    weights = {model: 1.0 / (variance / one.n + tau * tau) for model, one in seen.items()}
    total = sum(weights.values()) + 1.0 / COMMON**2
    said = sum(weights[model] * one.mean for model, one in seen.items())
    squares = sum(weights[model] * one.mean**2 for model, one in seen.items())
    size = log_of(total) - sum(log_of(weight) for weight in weights.values())
    log_share = log_of(prior) - 0.5 * (squares - said * said / total + size)
    believed = {model: tau * tau * weight for model, weight in weights.items()}
    return _Fit(log_share, said / total, believed)
