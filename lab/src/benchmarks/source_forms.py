"""Other forms of correction, played in the engine beside the one that the service has.

`line`: gold on the judge's label, one slope for all models, and an offset of each model from that
line. `full`: beside the offset of each model, a coefficient of each feature. Both correct all
labels of the judge at each pair, those of the past included, out of the sums that the service
keeps; their offsets have the service's priors.

`prompts`: the service's `on`, and the judge's labels of prompts on which it is expected to
contradict gold are not learned (`TrustedPrompts`).
"""

from __future__ import annotations

import numpy as np

from benchmarks.played import Played
from benchmarks.source_worlds import Array
from router_state.sources.learned_labels import LearnedLabels
from router_state.sources.measured_sources import MeasuredSources
from router_state.sources.offsets import ModelPairs, offsets
from router_state.sources.pair_sums import Within

NOISE, FEATURES = 0.15, 0.03
"""Deviations of a pair's difference, and of the coefficient of a feature before any pair."""
SLOPE_SQUARES = 0.08
"""Squares that the slope's prior, 1, counts for."""


class Form:
    """A correction of the labels of judge-0."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.pairs: dict[str, list[tuple[Array, float, float]]] = {}
        self.applied: dict[str, tuple[Array, float]] = {}

    def pair(self, engine: Played, model: str, x: Array, judge: float, gold: float) -> None:
        """Take a pair, and correct what all models have learned."""
        self.pairs.setdefault(model, []).append((x, judge, gold))
        sources = engine.state.having(MeasuredSources)
        assert sources is not None
        slope = self._slope() if self.method == "line" else 1.0
        within = self._within(slope)
        common, own = offsets(self._means(slope), within, within)
        for (_, name), labels in sources.calibration.labels.items():
            regression = engine.state.arms[name].rewards
            labels.forget(regression.forgotten)
            wanted = self._change(name, labels, slope, own.get(name, common))
            before, then = self.applied.get(name, (np.zeros(len(x)), regression.forgotten))
            moved = wanted - before * np.exp(then - regression.forgotten)
            regression.revise(moved, difference=1.0, discount=1.0)
            self.applied[name] = wanted, regression.forgotten

    def _change(self, model: str, labels: LearnedLabels, slope: float, offset: float) -> Array:
        """Return what the correction adds to b."""
        d = labels.d
        contexts, response = labels.sums[:d], labels.sums[-d:]
        change = (slope - 1.0) * response - offset * contexts
        if self.method == "full" and model in self.pairs:
            A = np.zeros((d, d))
            A[np.tril_indices(d)] = labels.sums[d:-d]
            A += np.tril(A, -1).T
            change -= A @ self._features(model, offset)
        return np.asarray(change, dtype=np.float64)

    def _features(self, model: str, offset: float) -> Array:
        X, y, r = self._arrays(model)
        prior = np.full(X.shape[1], (NOISE / FEATURES) ** 2)
        prior[-1] = 1e6
        return np.asarray(np.linalg.solve(X.T @ X + np.diag(prior), X.T @ (y - r - offset)))

    def _arrays(self, model: str) -> tuple[Array, Array, Array]:
        x, y, r = zip(*self.pairs[model], strict=True)
        return np.array(x), np.array(y), np.array(r)

    def _slope(self) -> float:
        yy = yr = 0.0
        for model in self.pairs:
            _, y, r = self._arrays(model)
            yy += float(((y - y.mean()) ** 2).sum())
            yr += float(((y - y.mean()) * (r - r.mean())).sum())
        return (yr + SLOPE_SQUARES) / (yy + SLOPE_SQUARES)

    def _means(self, slope: float) -> dict[str, ModelPairs]:
        found = {}
        for model in sorted(self.pairs):
            _, y, r = self._arrays(model)
            found[model] = ModelPairs(len(y), slope * float(y.mean()), float(r.mean()), 0.0, 0.0)
        if self.method == "line":  # the line's intercept is no model's offset
            n = sum(one.n for one in found.values())
            middle = sum(one.n * (one.judge - one.gold) for one in found.values()) / n
            found = {name: one._replace(judge=one.judge - middle) for name, one in found.items()}
        return found

    def _within(self, slope: float) -> Within:
        n = yy = yr = rr = 0.0
        for model in self.pairs:
            _, y, r = self._arrays(model)
            a, b = slope * (y - y.mean()), r - r.mean()
            n, yy, yr, rr = n + len(y), yy + a @ a, yr + a @ b, rr + b @ b
        return Within(int(n) - len(self.pairs) + 1, yy / n, yr / n, rr / n)


LEAST_PAIRS = 12
"""Pairs from which on prompts are told apart."""
AGREES, AGREES_PAIRS = 0.5, 1.0
"""Agreement on the mean prompt before any pair, and the number of pairs that it counts for."""
DIFFERS = 0.5
"""Deviation of the agreement over prompts, before any pair."""


class TrustedPrompts:
    """The agreement of judge-0 with gold, by prompt.

    Of a pair both labels are taken around the means of its model's pairs. Their product, relative
    to their deviations, is regressed on the context: where its expectation is below 0, the judge
    contradicts gold.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[str, Array, float, float]] = []
        self.coefficients: Array | None = None

    def pair(self, model: str, x: Array, judge: float, gold: float) -> None:
        """Take a pair."""
        self.pairs.append((model, x, judge, gold))
        if len(self.pairs) < LEAST_PAIRS:
            return
        models, contexts, y, r = (np.array(column) for column in zip(*self.pairs, strict=True))
        for name in set(models):
            own = models == name
            y[own], r[own] = y[own] - y[own].mean(), r[own] - r[own].mean()
        products = y * r / (np.sqrt((y @ y) * (r @ r)) / len(y) + 1e-6)
        squares = (contexts[:, :-1] ** 2).mean(0)
        features = len(squares)
        prior = np.append(squares * features / DIFFERS**2, AGREES_PAIRS)
        b = contexts.T @ products
        b[-1] += AGREES * AGREES_PAIRS
        self.coefficients = np.linalg.solve(contexts.T @ contexts + np.diag(prior), b)

    def trusts(self, x: Array) -> bool:
        """Tell whether the judge is expected to follow gold on a prompt."""
        return self.coefficients is None or float(self.coefficients @ x) >= 0.0
