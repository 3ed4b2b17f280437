"""Estimate by how much a judge's labels of each model are above gold, from pairs of all models.

The pairs of a model estimate its offset as ȳ − r̄, with r̄ = mean gold − ω·(mean judge's − ȳ). Here
ȳ is the mean of all labels of the judge that the model has learned, and ω the slope of gold on the
judge's label within models. If the judge's labels predict gold well, ω removes the noise that the
two labels of a pair share. If they predict gold badly, ω removes the judge's noise (Angelopoulos et
al. 2023, arXiv:2311.01453).

A model's offset is c + e: c is the same for all models, e is the model's own. c ~ N(0, `COMMON`²)
and e ~ N(0, τ²). The pairs decide among the `SCATTERS` for τ: the share of each is its prior
probability × the likelihood of the pairs, and the estimate is the mean over them. With τ = 0 the
judge favours no model. So the labels of a judge who favours no model stay nearly as they are.

The priors were chosen on seeds 0 to 99 of `benchmarks.sources`, and measured on others
(lab/docs/sources.md). A prior of c without a centre near 0 loses most of the gain: a favoured model
gets most requests and so most pairs, and its offset is taken for the offset of all models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from router_state.kernel import exp_of, log_of
from router_state.sources.pair_sums import Within

COMMON = 0.05
"""Deviation of the offset that all models share: the usual difference of the scales of two
sources."""
SCATTERS = ((0.0, 0.8), (0.1, 0.1), (0.2, 0.1))
"""Deviations τ of the models' own offsets, each with its prior probability."""
PAIR_DEVIATION, SPREAD_PAIRS = 0.15, 4.0
"""Deviation of a pair's difference that is assumed before any pair, and the number of pairs that
this assumption counts for."""
SLOPE, SLOPE_SQUARES = 0.3, 0.08
"""Slope of gold on the judge's label that is assumed before any pair, and the sum of squares of
labels that this assumption counts for."""
MOST_SLOPE = 3.0
"""Largest slope: that of a judge whose labels differ a third as much as gold."""


class ModelPairs(NamedTuple):
    """Pairs of one model: how many still count, and the means of the judge's label and of gold.
    `learned` is the number of the judge's labels that the model has learned, `mean` their mean."""

    n: float
    judge: float
    gold: float
    learned: float
    mean: float


class _ModelOffset(NamedTuple):
    """The offset of a model as its pairs say, and its variance."""

    offset: float
    variance: float


class _Fit(NamedTuple):
    """One scatter: log of its share of the probability, the common offset, and by model the share
    of its own offset that is believed."""

    log_share: float
    common: float
    believed: dict[str, float]


def offsets(
    pairs: Mapping[str, ModelPairs], within: Within, whole: Within
) -> tuple[float, dict[str, float]]:
    """Return the offset of a model without a pair, and those of the models with pairs.

    Args:
        within: variances of both labels within models.
        whole: variances over the pairs of all models. They show how noisy a pair is even where each
            model has only a pair or two, which is too few for variances within models.
    """
    by_model = _model_offsets(pairs, within, whole)
    if not by_model:
        return 0.0, {}
    fits = [_fit(by_model, tau, prior) for tau, prior in SCATTERS]
    most = max(fit.log_share for fit in fits)
    shares = [exp_of(fit.log_share - most) for fit in fits]
    total = sum(shares)
    weighed = [(share / total, fit) for share, fit in zip(shares, fits, strict=True)]
    common = sum(share * fit.common for share, fit in weighed)
    return common, {
        model: sum(
            share * (fit.common + fit.believed[model] * (one.offset - fit.common))
            for share, fit in weighed
        )
        for model, one in by_model.items()
    }


def _model_offsets(
    pairs: Mapping[str, ModelPairs], within: Within, whole: Within
) -> dict[str, _ModelOffset]:
    n = float(within.n)
    slope = (n * within.yr + SLOPE * SLOPE_SQUARES) / (n * within.yy + SLOPE_SQUARES)
    slope = min(max(slope, 0.0), MOST_SLOPE)
    left = max(whole.rr - 2.0 * slope * whole.yr + slope * slope * whole.yy, 0.0)
    variance = (SPREAD_PAIRS * PAIR_DEVIATION**2 + whole.n * left) / (SPREAD_PAIRS + whole.n)
    found: dict[str, _ModelOffset] = {}
    for model, one in pairs.items():
        if one.n <= 0.0:
            continue
        offset, doubt = one.judge - one.gold, variance / one.n
        if one.learned > 0.0:
            offset += (1.0 - slope) * (one.mean - one.judge)
            doubt += (1.0 - slope) ** 2 * within.yy / one.learned
        found[model] = _ModelOffset(offset, doubt)
    return found


def _fit(by_model: Mapping[str, _ModelOffset], tau: float, prior: float) -> _Fit:
    # The offsets have the covariance diag(v + τ²) + COMMON²·11ᵀ, inverted by Sherman–Morrison.
    weights = {model: 1.0 / (one.variance + tau * tau) for model, one in by_model.items()}
    total = sum(weights.values()) + 1.0 / COMMON**2
    weighed = sum(weights[model] * one.offset for model, one in by_model.items())
    squares = sum(weights[model] * one.offset**2 for model, one in by_model.items())
    size = log_of(total) - sum(log_of(weight) for weight in weights.values())
    log_share = log_of(prior) - 0.5 * (squares - weighed * weighed / total + size)
    believed = {model: tau * tau * weight for model, weight in weights.items()}
    return _Fit(log_share, weighed / total, believed)
