"""Share evidence on what the verdicts of a verifier mean: the own evidence of a router, and that of
other routers.

A label of an answer with a verdict in bin j says of g_aj = h_j + h_aj, to first order,

    z = g + (label − p) ÷ p(1 − p),   with precision w = 1 ÷ (1 ÷ p(1 − p) + the logit's variance).

Σ w and Σ w·z are stored beside the table, for own labels and for other routers' evidence. From both
follows the table's posterior under the prior that every table has: h_j ~ N(·, SHARED) and h_aj ~
N(0, OWN). See `VerdictTable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from router_state.config import Matrix, Vector
from router_state.kernel import MEMORY, VerdictTable, exp_of, log_of
from router_state.shared_numbers import Numbers

LEAST_VERDICTS_SHARED = 20
"""Least labels behind sums that leave their router, and least verdicts behind the shares of the
bins that leave it."""
VERDICTS_APART = 0.5
"""Deviation of g, and of a logit of the bins' shares, that is expected between routers."""
LEVEL_APART = 0.1
"""Deviation of the mean reward of verified answers that is expected between routers."""
LEVEL_VARIANCE = 0.25
"""Largest variance of one answer's expected reward around the mean of verified answers."""
LEAST_PROBABLE, MOST_LOGIT_DOUBT, LARGEST_LOGIT = 0.02, 4.0, 8.0
"""Least probability, largest variance of a reward's logit, and largest z, in logits."""
LEAST_PRECISION = 0.5
"""Precision of g over all bins that makes a model known, in logits⁻²: some three labels."""
MOST_BELIEVED = 200.0
"""Verdicts for which the others' shares of the bins count at most."""

Rows = dict[str, list[float]]
"""Numbers by model."""


class SharedVerdicts(Struct, array_like=True):
    """Evidence on one verifier.

    Attributes:
        bins: number of bins J.
        own: Σ w and Σ w·z by bin of own labels, by model: 2J numbers, as of `given` and `others`.
        given: the same sums of the router whose exported state this router started with.
        others: the same sums from other routers.
        added: verdicts by bin that other routers counted and the table contains, by model.
        shares: what other routers report of the bins' shares and of the level: precisions and
            weighted means, 2J numbers.
    """

    bins: int
    own: Rows = {}
    given: Rows = {}
    others: Rows = {}
    added: Rows = {}
    shares: Rows = {}

    # Own evidence.

    def begin(self, table: VerdictTable) -> None:
        """Take over what a table has learned from labels before its router joined others."""
        J, prior, now = self.bins, _Parts.of(_prior(table)), _Parts.of(table)
        first = 1.0 / (prior.spread + prior.own_spread[0])
        W = np.maximum(1.0 / (now.spread + now.own_spread) - first, 0.0)
        W = np.where(now.labels > 0.0, W, 0.0)
        before = first * prior.h
        z = (now.h + now.own) / (now.spread + now.own_spread) - before
        for k, name in enumerate(table.names):
            if W[k].any():
                self.own[name] = [*W[k], *np.where(W[k] > 0.0, z[k], 0.0)]
        assert all(len(row) == 2 * J for row in self.own.values())

    def note(
        self, table: VerdictTable, k: int, j: int, *, reward: float, variance: float, label: float
    ) -> None:
        """Note a label before the table learns it; the arguments are those of `VerdictTable.learn`.
        Older labels of the model fade.
        """
        J = self.bins
        own = self.own.setdefault(table.names[k], [0.0] * (2 * J))
        p = table.given(k, j, reward)
        r = min(max(reward, LEAST_PROBABLE), 1.0 - LEAST_PROBABLE)
        info, spread = max(p * (1.0 - p), LEAST_PROBABLE), r * (1.0 - r)
        w = 1.0 / (1.0 / info + min(variance / (spread * spread), MOST_LOGIT_DOUBT))
        h = float(table.array[j] + table.array[_row(J, k) + j])
        z = h + (label - p) / info
        fade = 1.0 - 1.0 / MEMORY
        own[j] = fade * own[j] + w
        own[J + j] = fade * own[J + j] + w * z

    def shareable(self, table: VerdictTable) -> dict[str, Numbers]:
        """Return the numbers that may leave the router, by model: g by bin, logits of the bins'
        shares and the mean reward. A model with fewer than `LEAST_VERDICTS_SHARED` labels is
        represented by the mean of all models.
        """
        J, now, found = self.bins, _Parts.of(table), {}
        own = {name: np.array(self.own.get(name, [0.0] * (2 * J))) for name in table.names}
        whole = np.sum([*own.values()], axis=0) if own else np.zeros(2 * J)
        if now.labels.sum() < LEAST_VERDICTS_SHARED:
            whole = np.zeros(2 * J)
        pooled = _means(whole[:J], whole[J:])
        for k, name in enumerate(table.names):
            W = own[name][:J] if whole[:J].any() else np.zeros(J)
            enough = now.labels[k].sum() >= LEAST_VERDICTS_SHARED
            z = _means(W, own[name][J:]) if enough else pooled
            z = np.clip(z, -LARGEST_LOGIT, LARGEST_LOGIT)
            counts = np.maximum(now.counts[k] - np.array(self.added.get(name, [0.0] * J)), 0.0)
            S, s = np.zeros(J), np.zeros(J)
            if counts.sum() >= LEAST_VERDICTS_SHARED:
                S, s = _logits(counts)
            s[-1] = now.level[k]
            precision = np.concatenate([W, S]) * _units(J) ** 2
            if precision.any():
                weighted = np.concatenate([W * z, S * s]) * _units(J)
                found[name] = Numbers(precision, weighted)
        return found

    # What others told.

    def take(self, others: Mapping[str, Numbers | None], table: VerdictTable) -> bool:
        """Put other routers' numbers on some models in place of earlier ones; tell whether anything
        changed."""
        J, changed = self.bins, False
        for name, numbers in others.items():
            if numbers is not None and len(numbers.precision) != 2 * J:
                numbers = None
            if numbers is None:
                changed = self.others.pop(name, None) is not None or changed
                self.shares.pop(name, None)
                continue
            precision = numbers.precision / _units(J) ** 2
            weighted = numbers.weighted / _units(J)
            self.others[name] = [*precision[:J].tolist(), *weighted[:J].tolist()]
            self.shares[name] = [*precision[J:].tolist(), *weighted[J:].tolist()]
            changed = True
        if changed:
            self._conclude(table)
        return changed

    def _conclude(self, table: VerdictTable) -> None:
        """Compute a table anew from own evidence and that of others."""
        J, prior, array = self.bins, _Parts.of(_prior(table)), table.array
        sums = np.zeros((len(table.names), 2 * J))
        for k, name in enumerate(table.names):
            for rows in (self.own, self.given, self.others):
                sums[k] += rows.get(name, [0.0] * (2 * J))
        W, Wz = sums[:, :J], sums[:, J:]
        S, of_model = prior.spread, prior.own_spread[0]
        left = 1.0 / (1.0 + of_model * W)
        variance = 1.0 / (1.0 / S + (W * left).sum(0))
        h = variance * (prior.h / S + (Wz * left).sum(0))
        own = (Wz - W * h) / (1.0 / of_model + W)
        # Both parts of a variance are stored as if they were independent; their sum is right.
        whole = 1.0 / (1.0 / of_model + W) + variance * left**2
        part = np.minimum(variance, (whole * S / (S + of_model)).min(0, initial=np.inf))
        array[:J], array[J : 2 * J] = h, part
        for k, name in enumerate(table.names):
            at = _row(J, k)
            array[at : at + J], array[at + J : at + 2 * J] = own[k], whole[k] - part
            self._count(name, array[at + 2 * J : at + 4 * J + 1], unseen=prior.level[k])
        table.renew()

    def _count(self, name: str, row: npt.NDArray[np.float64], *, unseen: float) -> None:
        """Count the verdicts that others told of in place of those before.

        Args:
            unseen: level of a model without a verdict.
        """
        J = self.bins
        counts = np.maximum(row[:J] - np.array(self.added.pop(name, [0.0] * J)), 0.0)
        if counts.sum() < 1e-9 and len(row):
            row[-1] = unseen
        if (shares := self.shares.get(name)) is not None:
            precision, weighted = np.array(shares[:J]), np.array(shares[J:])
            means = _means(precision, weighted)
            added = _counts(precision[:-1], means[:-1])
            if counts.sum() < 1.0 and precision[-1] > 0.0:
                row[-1] = min(max(means[-1], LEAST_PROBABLE), 1.0 - LEAST_PROBABLE)
            if added.any():
                self.added[name] = added.tolist()
                counts = counts + added
        row[:J] = counts

    @property
    def known_models(self) -> list[str]:
        """Return the models on which other routers' evidence counts for a few labels."""
        J = self.bins
        return [name for name, row in self.others.items() if sum(row[:J]) >= LEAST_PRECISION]

    def with_family_counts(self, standing: Mapping[str, Any]) -> dict[str, object]:
        """Return a verifier's standing with other routers' verdicts counted apart, and with the
        number of labels that their evidence counts for."""
        models = []
        for one in standing["models"]:
            added = sum(self.added.get(one["model"], ()))
            counts = {
                "verdicts": max(one["verdicts"] - round(added), 0),
                "family_verdicts": round(added),
            }
            if (row := self.others.get(one["model"])) is not None:
                one = one | counts | {"family_labels": round(_labels(row))}
            models.append(one)
        return {**standing, "models": models}

    def adopt_others(self) -> None:
        """Add the evidence of `others` to `given`, for a router that goes on from this state."""
        for name, row in self.others.items():
            before = self.given.get(name, [0.0] * len(row))
            self.given[name] = [a + b for a, b in zip(before, row, strict=True)]
        self.others, self.added, self.shares = {}, {}, {}

    def without(self, model: str) -> None:
        """Forget a model."""
        for rows in (self.own, self.given, self.others, self.added, self.shares):
            rows.pop(model, None)


class _Parts(Struct):
    """A table's numbers as arrays: by bin, and by model and bin."""

    h: Vector
    spread: Vector
    own: Matrix
    own_spread: Matrix
    counts: Matrix
    labels: Matrix
    level: Vector

    @classmethod
    def of(cls, table: VerdictTable) -> _Parts:
        """Return copies."""
        J, array = table.J, table.array
        rows = array[2 * J + 2 :].reshape(table.K, 4 * J + 1)
        own, spread, counts, labels = (rows[:, n * J : (n + 1) * J].copy() for n in range(4))
        h, shared = array[:J].copy(), array[J : 2 * J].copy()
        return cls(h, shared, own, spread, counts, labels, rows[:, -1].copy())


def _prior(table: VerdictTable) -> VerdictTable:
    """Return a table that has learned nothing."""
    return VerdictTable(table.J, table.names or ("",))


def _row(J: int, k: int) -> int:
    return 2 * J + 2 + k * (4 * J + 1)


def _units(J: int) -> Vector:
    """Return the deviation that is expected of each number between routers."""
    return np.array([VERDICTS_APART] * (2 * J - 1) + [LEVEL_APART])


def _means(W: Vector, Wz: Vector) -> Vector:
    return np.divide(Wz, W, out=np.zeros(len(W)), where=W > 0.0)


def _labels(row: list[float]) -> float:
    """Return how many labels tell as much as Σ w and Σ w·z of the bins, of answers whose expected
    reward is known to be ½."""
    W, Wz = np.array(row).reshape(2, -1)
    p = np.array([1.0 / (1.0 + exp_of(-z)) for z in _means(W, Wz).tolist()])
    return float((W / np.maximum(p * (1.0 - p), LEAST_PROBABLE)).sum())


def _logits(counts: Vector) -> tuple[Vector, Vector]:
    """Return precisions and values of the logit of "beyond bin j, if in bin j or beyond", for each
    bin but the last; and the precision of the mean reward, whose value is left to be set."""
    beyond = np.cumsum(counts[::-1])[::-1] + 1.0
    p = np.clip((beyond[1:] - 0.5) / beyond[:-1], 0.01, 0.99)
    n = float(counts.sum())
    precision = [*(beyond[:-1] * p * (1.0 - p)), min(n, 50.0) / LEVEL_VARIANCE]
    return np.array(precision), np.array([*(log_of(one / (1.0 - one)) for one in p.tolist()), 0.0])


def _counts(precision: Vector, means: Vector) -> Vector:
    """Invert the logits: return verdicts by bin."""
    p = np.array([1.0 / (1.0 + exp_of(-one)) for one in means.tolist()])
    n = min(float(precision[0] / (p[0] * (1.0 - p[0]))), MOST_BELIEVED)
    beyond = np.concatenate([[1.0], np.cumprod(p)])
    return np.asarray(n * (beyond - np.concatenate([beyond[1:], [0.0]])), np.float64)
