"""Estimate by how much a judge's labels of each model are above gold, from pairs of all models.

The pairs of a model estimate its offset as ȳ − r̄, with r̄ = mean gold − ω·(mean judge's − ȳ). Here
ȳ is the mean of all labels of the judge that the model has learned, and ω the slope of gold on the
judge's label within models. If the judge's labels predict gold well, ω removes the noise that the
two labels of a pair share. If they predict gold badly, ω removes the judge's noise (Angelopoulos et
al. 2023, arXiv:2311.01453).

A judge who favours no model may still be kinder than gold to all models alike, by c. Its scale may
also be narrower than gold's, which a slope ω above 1 says. Then a step of the judge is worth ω
steps of gold, and the offset of a model whose labels have the mean ȳ is c − (ω − 1)·(ȳ − ½). So all
models lie on one line, which moves their levels apart and keeps the judge's order. Beyond it a
model has an offset e of its own, by which the judge favours that model.

The pairs decide among suppositions: whether there is a line, which of the `COMMONS` is the
deviation of c, and which of the `SCATTERS` that of e, all around 0. The share of a supposition is
its prior probability × the likelihood of the pairs, and the estimate is the mean over all. So the
labels of a judge who favours no model stay nearly in their order. Where a judge's steps between
answers of one model are narrower than gold's, but those between models are not, the pairs have to
show that there is no line.

The priors were chosen on seeds 0 to 99 of `benchmarks.sources`, and measured on others
(lab/docs/sources.md). A wide prior of c alone loses most of the gain: a favoured model gets most
requests and so most pairs, and its offset is taken for the offset of all models. With a narrow
prior alone, a judge who is kind to all models alike seems to favour those with pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from router_state.kernel import exp_of, log_of
from router_state.sources.pair_sums import Within

COMMONS = ((0.05, 0.76), (0.3, 0.24))
"""Deviations of the offset c that all models share, each with its prior probability. On seeds 5000
to 5029 of `benchmarks.sources`, 0.6 in place of 0.24 changes the mean gold reward by −0.004 where a
judge favours a model, and by +0.002 where it is strict with all models."""
SCATTERS = ((0.0, 0.8), (0.1, 0.1), (0.2, 0.1))
"""Deviations τ of the models' own offsets, each with its prior probability."""
PAIR_DEVIATION, SPREAD_PAIRS = 0.15, 4.0
"""Deviation of a pair's difference that is assumed before any pair, and the number of pairs that
this assumption counts for."""
SLOPE, SLOPE_SQUARES = 0.3, 0.08
"""Slope of gold on the judge's label that is assumed before any pair, and the sum of squares of
labels that this assumption counts for."""
MIDDLE = 0.5
"""Label around which a narrow scale is stretched; the rest of the stretching is part of c."""
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

    @property
    def level(self) -> float:
        """The mean of the judge's labels of the model."""
        return self.mean if self.learned > 0.0 else self.judge


class _ModelOffset(NamedTuple):
    """The offset of a model beyond the line, as its pairs say, and its variance."""

    offset: float
    variance: float


class _Fit(NamedTuple):
    """One supposition: log of its share of the probability, and the models' offsets under it."""

    log_share: float
    offsets: dict[str, float]


def offsets(models: Mapping[str, ModelPairs], within: Within, whole: Within) -> dict[str, float]:
    """Return the offset of each model; without any pair none.

    Args:
        within: variances of both labels within models.
        whole: variances over the pairs of all models. They show how noisy a pair is even where each
            model has only a pair or two, which is too few for variances within models.
    """
    if not any(one.n > 0.0 for one in models.values()):
        return {}
    slope = _slope(within)
    variance = _variance(whole, slope)
    fits: list[_Fit] = []
    for line in (0.0, slope - 1.0) if slope > 1.0 else (0.0,):
        by_model = _model_offsets(models, slope, line, variance, within.yy)
        for (common, likely), (tau, prior) in product(COMMONS, SCATTERS):
            fits.append(_fit(models, by_model, line, common, tau, likely * prior))
    most = max(fit.log_share for fit in fits)
    shares = [exp_of(fit.log_share - most) for fit in fits]
    total = sum(shares)
    return {
        model: sum(
            share / total * fit.offsets[model] for share, fit in zip(shares, fits, strict=True)
        )
        for model in models
    }


def _slope(within: Within) -> float:
    n = float(within.n)
    slope = (n * within.yr + SLOPE * SLOPE_SQUARES) / (n * within.yy + SLOPE_SQUARES)
    return min(max(slope, 0.0), MOST_SLOPE)


def _variance(whole: Within, slope: float) -> float:
    """Return the variance of what a pair says of its model's offset."""
    left = max(whole.rr - 2.0 * slope * whole.yr + slope * slope * whole.yy, 0.0)
    return (SPREAD_PAIRS * PAIR_DEVIATION**2 + whole.n * left) / (SPREAD_PAIRS + whole.n)


def _model_offsets(
    models: Mapping[str, ModelPairs], slope: float, line: float, variance: float, spread: float
) -> dict[str, _ModelOffset]:
    found: dict[str, _ModelOffset] = {}
    for model, one in models.items():
        if one.n <= 0.0:
            continue
        offset, doubt = one.judge - one.gold, variance / one.n
        if one.learned > 0.0:
            offset += (1.0 - slope) * (one.mean - one.judge)
            doubt += (1.0 - slope + line) ** 2 * spread / one.learned
        found[model] = _ModelOffset(offset + line * (one.level - MIDDLE), doubt)
    return found


def _fit(
    models: Mapping[str, ModelPairs],
    by_model: Mapping[str, _ModelOffset],
    line: float,
    deviation: float,
    tau: float,
    prior: float,
) -> _Fit:
    # The offsets have the covariance diag(v + τ²) + deviation²·11ᵀ, inverted by Sherman–Morrison.
    weights = {model: 1.0 / (one.variance + tau * tau) for model, one in by_model.items()}
    total = sum(weights.values()) + 1.0 / deviation**2
    weighed = sum(weights[model] * one.offset for model, one in by_model.items())
    squares = sum(weights[model] * one.offset**2 for model, one in by_model.items())
    size = log_of(total * deviation**2) - sum(log_of(weight) for weight in weights.values())
    common = weighed / total
    found = {model: common - line * (one.level - MIDDLE) for model, one in models.items()}
    for model, one in by_model.items():
        found[model] += tau * tau * weights[model] * (one.offset - common)
    return _Fit(log_of(prior) - 0.5 * (squares - weighed * weighed / total + size), found)
