"""The meaning of a verifier's verdicts: how often an answer is right, given what was said of it.

Verdicts come in J bins, 2 of them: passed or not. With r the reward that is expected of model a,

    P(right | bin j, a) = σ(logit r + h_j + h_aj).

h_j is shared by the models, h_aj is a model's own. Both are learned from labels of answers that have
a verdict, so it does no harm that only some answers are labelled: one scalar Kalman step a label.
Shares of the bins, labelled or not, then give P(j | right) and P(j | wrong).
"""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.learning.counts cimport MEMORY
from router_state.kernel.numbers.elementary cimport exp, log
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, behind, view

cdef Real BELIEF = 1.5
"""Prior of h: that much for the last bin and less for the first, in logits. It says that verdicts
tell something, and `SHARED` that they may not."""
cdef Real SHARED = 1.0
cdef Real OWN = 0.25
"""Variances of h_j and h_aj before the first label, in logits²."""
cdef Real SEEN = 4.0
"""Verdicts that even shares of the bins count for."""
cdef Real LEVEL = 0.6
"""Mean reward of a model's verified answers before the first one."""
cdef Real FOLLOWS = 0.02
"""Least weight of an answer in that mean: it follows the last 50."""
cdef Real LEAST = 0.02
"""Least probability, and one less the largest: rewards are estimates beyond 0 and 1, too."""
cdef Real ALIKE = 0.4
cdef Real ALIKE_SPREAD = 0.2
"""Correlation of two models' errors on one prompt before the first label of a second answer, and
the deviation of that."""
cdef Real MOST_DOUBT = 4.0
"""Largest variance of a reward's logit, in logits²: it says no more than that nothing is known."""
cdef Real LEAST_SLOPE = 0.1
"""Least slope that a label's difference is divided by: where a verdict says nearly all, a label
says little more."""
cdef Real MOST_BEYOND = 2.0
"""Most by which a label may move what is observed, in rewards."""
cdef Real FARTHEST = 6.0
"""Largest h, in logits: as good as certain."""


cdef class VerdictTable:
    """The table of one verifier.

    Attributes:
        exact: whether verdicts are the truth, so that there is nothing to learn.
        J, K: bins and models; names: of the models, in the order of their rows.
        array: h and its variances (2J), ρ and its variance, then of each model h, its variances, verdicts and labels by
            bin, and its mean reward (4J + 1).
    """

    def __init__(self, Index J, names, *, Flag exact=False):
        if J < 2:
            raise ValueError(f"verdicts in {J} bins tell nothing")
        self.J, self.K, self.names = J, 0, ()
        self.array = np.zeros(2 * J + 2)
        self.values = view(self.array)
        self.values[2 * J], self.values[2 * J + 1] = ALIKE, ALIKE_SPREAD * ALIKE_SPREAD
        for j in range(J):
            self.values[j] = BELIEF * (2.0 * (j + 0.5) / J - 1.0)
            self.values[J + j] = SHARED
        self.exact = exact
        if exact:
            for j in range(J):
                self.values[j] = FARTHEST if 2 * j >= J else -FARTHEST
                self.values[J + j] = 0.0
        self.keep(names)

    def keep(self, names):
        """Have a row for each of these models and no other; the rows of those that stay are kept."""
        J, width = self.J, 4 * self.J + 1
        before = {name: self.array[2 * J + 2 + k * width :][:width] for k, name in enumerate(self.names)}
        new = np.concatenate([np.zeros(J), np.full(J, 0.0 if self.exact else OWN), np.zeros(2 * J), [LEVEL]])
        rows = [before.get(name, new) for name in names]
        self.array = np.concatenate([self.array[: 2 * J + 2], *rows])
        self.values = view(self.array)
        self.names, self.K = tuple(names), len(names)

    def restore(self, numbers):
        """Take the numbers of another table of these models. Raises ValueError."""
        found = np.array(numbers, dtype=np.float64)
        if found.shape != self.array.shape or not np.isfinite(found).all():
            raise ValueError(f"{found.shape} numbers are not a table of {self.K} models")
        self.array, self.values = found, view(found)

    def is_sound(self):
        """Tell whether its numbers can be true."""
        J, finite = self.J, bool(np.isfinite(self.array).all())
        rows = self.array[2 * J + 2 :].reshape(self.K, 4 * J + 1)
        counts = bool((rows[:, J : 4 * J] >= 0.0).all() and (self.array[J : 2 * J] >= 0.0).all())
        return finite and counts and bool((0.0 < rows[:, -1]).all() and (rows[:, -1] < 1.0).all())

    cdef Floats row_of(self, Index k):
        if not 0 <= k < self.K:
            raise IndexError(f"there is no model {k} of {self.K}")
        return behind(self.values, 2 * self.J + 2 + k * (4 * self.J + 1))

    cdef Real chance(self, Floats own, Index j, Real logit, Real deviations):
        """Return P(right | bin j), h moved by so many of its deviations."""
        J, values = self.J, self.values
        h: Real = values[j] + own[j] + deviations * sqrt(values[J + j] + own[J + j])
        return 1.0 / (1.0 + exp(-logit - h))

    def see(self, Index k, Index j, Real reward):
        """Take a verdict in: bin j for an answer of the k-th model that was expected to earn
        `reward`."""
        J, own = self.J, self.row_of(k)
        if not 0 <= j < J:
            raise IndexError(f"there is no bin {j} of {J}")
        total: Real = 1.0
        for i in range(J):
            total += own[2 * J + i]
        own[2 * J + j] += 1.0
        own[4 * J] += max(FOLLOWS, 1.0 / total) * (bounded(reward) - own[4 * J])
        if total > MEMORY:
            for i in range(J):
                own[2 * J + i] *= MEMORY / total

    def learn(self, Index k, Index j, Real reward, Real variance, Real label):
        """Take in the label of an answer that has a verdict in bin j. Return what the label teaches
        of the model's reward beyond the verdict: a value to observe, its weight, and by how much
        the weighted value rises with the label.

        Args:
            reward: what was expected of the k-th model's answer, with its variance.
            label: its reward in [0, 1].
        """
        J, values, own = self.J, self.values, self.row_of(k)
        if not 0 <= j < J:
            raise IndexError(f"there is no bin {j} of {J}")
        r: Real = bounded(reward)
        p: Real = self.chance(own, j, log(r / (1.0 - r)), 0.0)
        # Older labels count for less, up to what nobody has learned anything of.
        most: Real = 0.0 if self.exact else 1.0
        shared: Real = min(values[J + j] * (1.0 + 1.0 / MEMORY), most * SHARED)
        of_model: Real = min(own[J + j] * (1.0 + 1.0 / MEMORY), most * OWN)
        info: Real = max(p * (1.0 - p), LEAST)
        spread: Real = r * (1.0 - r)
        doubt: Real = shared + of_model + min(variance / (spread * spread), MOST_DOUBT)
        step: Real = (label - p) / (1.0 + info * doubt)
        shrink: Real = info / (1.0 + info * (shared + of_model))
        values[j] = min(max(values[j] + shared * step, -FARTHEST), FARTHEST)
        own[j] = min(max(own[j] + of_model * step, -FARTHEST), FARTHEST)
        values[J + j] = shared - shared * shared * shrink
        own[J + j] = of_model - of_model * of_model * shrink
        own[3 * J + j] += 1.0
        slope: Real = info / spread
        noise: Real = info + info * info * (shared + of_model)
        weight: Real = min(slope * slope * spread / noise, 1.0)
        slope = max(slope, LEAST_SLOPE)
        beyond: Real = min(max((label - p) / slope, -MOST_BEYOND), MOST_BEYOND)
        return reward + beyond, weight, weight / slope

    @property
    def alike(self):
        """ρ, how alike the errors of two models on a prompt are: after an answer that did not pass,
        another one is right less often, too."""
        return self.values[2 * self.J]

    def learn_second(self, Real gap, Real reward, Real variance, Real label):
        """Take in the label of an answer that followed one which did not pass; return what it
        teaches of its model's reward: a value to observe, and its weight.

        Args:
            gap: by how much less a ρ of 1 lets expect here.
            reward: what was expected of the answer otherwise, with its variance.
        """
        values: Floats = behind(self.values, 2 * self.J)
        r: Real = bounded(reward)
        noise: Real = r * (1.0 - r)
        rho: Real = values[0]
        most: Real = ALIKE_SPREAD * ALIKE_SPREAD
        doubt: Real = min(values[1] * (1.0 + 1.0 / MEMORY), most)
        gain: Real = doubt * gap / (gap * gap * doubt + noise + variance)
        values[0] = min(max(rho - gain * (label - reward + rho * gap), 0.0), 1.0)
        values[1] = doubt - gain * gap * doubt
        return label + rho * gap, noise / (noise + gap * gap * doubt)

    def tells(self, Index k, Index j, Real reward, Real noise):
        """Return what a verdict in bin j teaches of the k-th model's reward: a value to observe, and
        its weight. It is the score of the verdict's likelihood: a coin's has none.

        Args:
            noise: variance of one reward, which an observation of weight 1 has.
        """
        J, values, own = self.J, self.values, self.row_of(k)
        r: Real = bounded(reward)
        logit: Real = log(own[4 * J] / (1.0 - own[4 * J]))
        rights: Real = 0.0
        wrongs: Real = 0.0
        doubt: Real = 0.0
        for i in range(J):
            share: Real = own[2 * J + i] + SEEN / J
            right: Real = self.chance(own, i, logit, 0.0)
            rights += share * right
            wrongs += share * (1.0 - right)
            doubt += (values[J + i] + own[J + i]) / J
        info: Real = 0.0
        score: Real = 0.0
        for i in range(J):
            share = own[2 * J + i] + SEEN / J
            right = self.chance(own, i, logit, 0.0)
            t: Real = share * right / rights
            f: Real = share * (1.0 - right) / wrongs
            p: Real = t * r + f * (1.0 - r)
            info += (t - f) * (t - f) / p
            if i == j:
                score = (t - f) / p
        weight: Real = noise * info / (1.0 + 2.0 * doubt)
        return (reward + score / info if info > 0.0 else reward), min(weight, 1.0)

    def likelihoods(self, Index k, Index edge, Real deviations):
        """Return the shares of right and of wrong answers of the k-th model that are beyond the
        first `edge` bins.

        Args:
            deviations: by how many deviations of h verdicts are taken to tell more than is known.
        """
        J, own = self.J, self.row_of(k)
        logit: Real = log(own[4 * J] / (1.0 - own[4 * J]))
        rights: Real = 0.0
        wrongs: Real = 0.0
        passed: Real = 0.0
        slipped: Real = 0.0
        for j in range(J):
            share: Real = own[2 * J + j] + SEEN / J
            right: Real = self.chance(own, j, logit, deviations if j >= edge else -deviations)
            rights += share * right
            wrongs += share * (1.0 - right)
            if j >= edge:
                passed += share * right
                slipped += share * (1.0 - right)
        return passed / rights, slipped / wrongs


cdef Real bounded(Real reward) noexcept:
    return min(max(reward, LEAST), 1.0 - LEAST)
