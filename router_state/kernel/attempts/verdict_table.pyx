"""The meaning of a verifier's verdicts: how often an answer is right, given its verdict.

Verdicts fall into J bins; with J = 2: passed or not. With r the expected reward of model a,

    P(right | bin j, a) = σ(logit r + h_j + h_aj).

The models share h_j; h_aj belongs to one model. Both are learned from labels of answers that have
a verdict, by one scalar Kalman step a label. So labels of only some answers suffice. P(j | right)
and P(j | wrong) follow from the shares of verdicts in each bin, with labels or without.
"""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.attempts.plans cimport Looks
from router_state.kernel.learning.counts cimport MEMORY
from router_state.kernel.numbers.elementary cimport exp, exps, log
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, block, of_block, scratch, view,
)

cdef Real BELIEF = 1.5
"""Prior mean of h in logits: +`BELIEF` for the last bin, −`BELIEF` for the first. The prior says
that verdicts tell something; its variance `SHARED` admits that they may not.
"""
cdef Real SHARED = 1.0
cdef Real OWN = 0.25
"""Variances of h_j and h_aj before the first label, in logits²."""
cdef Real SEEN = 4.0
"""Verdicts that even shares of the bins count for."""
cdef Real FIRST_LEVEL = 0.6
"""Mean reward of a model's verified answers before the first one."""
cdef Real FOLLOWS = 0.02
"""Least weight of an answer in that mean: it follows the last 50."""
cdef Real LEAST_CHANCE = 0.02
"""Least probability, and one less the largest: rewards are estimates beyond 0 and 1, too."""
cdef Real ALIKE = 0.4
cdef Real ALIKE_SPREAD = 0.2
"""Prior mean and deviation of ρ, the correlation of two models' errors on one prompt."""
cdef Real MOST_DOUBT = 4.0
"""Largest variance of a reward's logit, in logits²: nothing is known of the reward then."""
cdef Real LEAST_SLOPE = 0.1
"""Least slope that a label's difference is divided by: where a verdict tells nearly all, a label
tells little more.
"""
cdef Real MOST_BEYOND = 2.0
"""Most by which a label may move what is observed, in rewards."""
cdef Real FARTHEST_LOGIT = 6.0
"""Largest h, in logits: as good as certain."""


cdef class VerdictTable:
    """The table of one verifier.

    Attributes:
        exact: whether verdicts are the truth, so that there is nothing to learn.
        is_stale: whether looks have to be computed anew.
        J, K: numbers of bins and of models; names: names of the models, in the order of their rows.
        array: h_j and its variances (2J), ρ and its variance; then of each model h_aj, its
            variances, numbers of verdicts and of labels by bin, and the model's mean reward (4J +
            1).
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
                self.values[j] = FARTHEST_LOGIT if 2 * j >= J else -FARTHEST_LOGIT
                self.values[J + j] = 0.0
        self.keep(names)

    def keep(self, names):
        """Keep one row for each of these models and no other; a model that stays keeps its row."""
        J, width = self.J, 4 * self.J + 1
        before = {name: self.array[2 * J + 2 + k * width :][:width] for k, name in enumerate(self.names)}
        new = np.concatenate([np.zeros(J), np.full(J, 0.0 if self.exact else OWN), np.zeros(2 * J), [FIRST_LEVEL]])
        rows = [before.get(name, new) for name in names]
        self.array = np.concatenate([self.array[: 2 * J + 2], *rows])
        self.values = view(self.array)
        self.names, self.K = tuple(names), len(names)
        self._held = block(2 * self.K)
        self._stale = of_block(self._held)
        self._comes = behind(self._stale, self.K)
        self.expect(0.0, 1.0, [1.0] * self.K)

    cpdef renew(self):
        """Have the looks at all models' answers computed anew."""
        self.is_stale = True
        for k in range(self.K):
            self._stale[k] = 1.0

    def restore(self, numbers):
        """Copy the numbers of another table of these models. Raises ValueError."""
        found = np.array(numbers, dtype=np.float64)
        if found.shape != self.array.shape or not np.isfinite(found).all():
            raise ValueError(f"{found.shape} numbers are not a table of {self.K} models")
        self.array, self.values = found, view(found)
        self.renew()

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
        """Return P(right | bin j) with h moved by `deviations` of its posterior deviations."""
        J, values = self.J, self.values
        h: Real = values[j] + own[j] + deviations * sqrt(values[J + j] + own[J + j])
        return 1.0 / (1.0 + exp(-logit - h))

    def given(self, Index k, Index j, Real reward):
        """Return the probability that the k-th model's answer is right, given its bin.

        Args:
            reward: what is expected of the answer without its verdict.
        """
        if not 0 <= j < self.J:
            raise IndexError(f"there is no bin {j} of {self.J}")
        r: Real = bounded(reward)
        return self.chance(self.row_of(k), j, log(r / (1.0 - r)), 0.0)

    def see(self, Index k, Index j, Real reward):
        """Count a verdict: bin j, for an answer of the k-th model whose expected reward was
        `reward`.
        """
        J, own = self.J, self.row_of(k)
        if not 0 <= j < J:
            raise IndexError(f"there is no bin {j} of {J}")
        total: Real = 1.0
        for i in range(J):
            total += own[2 * J + i]
        self.is_stale, self._stale[k] = True, 1.0
        own[2 * J + j] += 1.0
        own[4 * J] += max(FOLLOWS, 1.0 / total) * (bounded(reward) - own[4 * J])
        if total > MEMORY:
            for i in range(J):
                own[2 * J + i] *= MEMORY / total

    def learn(self, Index k, Index j, Real reward, Real variance, Real label):
        """Learn the label of an answer that has a verdict in bin j. Return what the label tells of
        the model's reward beyond the verdict: a value to observe, its weight, and the slope of the
        weighted value in the label.

        Args:
            reward: expected reward of the k-th model's answer; variance: its variance.
            label: reward of the answer, in [0, 1].
        """
        J, values, own = self.J, self.values, self.row_of(k)
        if not 0 <= j < J:
            raise IndexError(f"there is no bin {j} of {J}")
        r: Real = bounded(reward)
        p: Real = self.chance(own, j, log(r / (1.0 - r)), 0.0)
        # Older labels count for less: the variance grows, at most to that before the first label.
        most: Real = 0.0 if self.exact else 1.0
        shared: Real = min(values[J + j] * (1.0 + 1.0 / MEMORY), most * SHARED)
        of_model: Real = min(own[J + j] * (1.0 + 1.0 / MEMORY), most * OWN)
        info: Real = max(p * (1.0 - p), LEAST_CHANCE)
        spread: Real = r * (1.0 - r)
        doubt: Real = shared + of_model + min(variance / (spread * spread), MOST_DOUBT)
        step: Real = (label - p) / (1.0 + info * doubt)
        shrink: Real = info / (1.0 + info * (shared + of_model))
        values[j] = min(max(values[j] + shared * step, -FARTHEST_LOGIT), FARTHEST_LOGIT)
        own[j] = min(max(own[j] + of_model * step, -FARTHEST_LOGIT), FARTHEST_LOGIT)
        values[J + j] = shared - shared * shared * shrink
        own[J + j] = of_model - of_model * of_model * shrink
        own[3 * J + j] += 1.0
        self.renew()
        slope: Real = info / spread
        noise: Real = info + info * info * (shared + of_model)
        weight: Real = min(slope * slope * spread / noise, 1.0)
        slope = max(slope, LEAST_SLOPE)
        beyond: Real = min(max((label - p) / slope, -MOST_BEYOND), MOST_BEYOND)
        return reward + beyond, weight, weight / slope

    @property
    def alike(self):
        """The correlation ρ of two models' errors on one prompt: where one answer did not pass,
        another is right less often.
        """
        return self.values[2 * self.J]

    def learn_second(self, Real gap, Real reward, Real variance, Real label):
        """Learn the label of a second answer, whose first did not pass. Return what the label
        tells of the second model's reward: a value to observe, and its weight.

        Args:
            gap: reward that the second answer would lose at ρ = 1.
            reward: expected reward of the second answer without that loss; variance: its variance.
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
        self.renew()
        return label + rho * gap, noise / (noise + gap * gap * doubt)

    def tells(self, Index k, Index j, Real reward, Real noise):
        """Return what a verdict in bin j tells of the k-th model's reward: a value to observe, and
        its weight. Both follow from the score of the verdict's likelihood, which is 0 for a coin's
        verdicts.

        Args:
            noise: variance of one reward, as of an observation of weight 1.
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
        """Return the shares of the k-th model's right and of its wrong answers whose verdict is
        above the first `edge` bins.

        Args:
            deviations: posterior deviations of h by which verdicts are assumed to tell more.
        """
        held = scratch(4 * self.J)
        room: Floats = of_block(held)
        self._spread(self.row_of(k), deviations, room)
        return self._shares(edge, 1, room)

    cdef void _spread(self, Floats own, Real away, Floats room):
        """Write of each bin its share of the verdicts, and P(right | bin) with h moved by −`away`,
        0 and `away` posterior deviations.
        """
        J: Index = self.J
        logit: Real = log(own[4 * J] / (1.0 - own[4 * J]))
        values: Floats = self.values
        for j in range(J):
            h: Real = values[j] + own[j]
            more: Real = away * sqrt(values[J + j] + own[J + j])
            room[4 * j], room[4 * j + 1] = 0.0, -logit - (h - more)
            room[4 * j + 2], room[4 * j + 3] = -logit - h, -logit - (h + more)
        exps(room, 4 * J)
        for i in range(4 * J):
            room[i] = 1.0 / (1.0 + room[i])
        for j in range(J):
            room[4 * j] = own[2 * J + j] + SEEN / J

    cdef (Real, Real) _shares(self, Index edge, Index more, Floats room) noexcept:
        """See `likelihoods`: verdicts tell more (1), less (−1) or as expected (0), by as much as
        `_spread` was given.
        """
        rights: Real = 0.0
        wrongs: Real = 0.0
        passed: Real = 0.0
        slipped: Real = 0.0
        for j in range(self.J):
            share: Real = room[4 * j]
            right: Real = room[4 * j + 2 + (more if j >= edge else -more)]
            rights += share * right
            wrongs += share * (1.0 - right)
            if j >= edge:
                passed += share * right
                slipped += share * (1.0 - right)
        return passed / rights, slipped / wrongs

    def expect(self, Real usd, Real share, list shares):
        """Set the dollars of a verdict, the share of the awaited verdicts that come, and that of the
        verdicts on each model's answers. Without a verdict an answer passes.
        """
        if len(shares) != self.K:
            raise ValueError(f"{len(shares)} shares of verdicts are not those of {self.K} models")
        self._usd = share * usd
        for k in range(self.K):
            self._comes[k] = shares[k]
        self.renew()

    cdef show(self, Index look, Views views):
        """Write `likelihoods` into looks: those of the models whose rows have changed since the
        last call, or of all after `renew`.

        Args:
            look: number of the look whose first bin that passes is 1; the others follow.
        """
        if views.sure.K != self.K:
            raise ValueError(f"a table of {self.K} models has no looks at {views.sure.K}")
        held = scratch(4 * self.J)
        room: Floats = of_block(held)
        rho: Real = self.values[2 * self.J]
        most: Real = min(rho + views.apart * sqrt(self.values[2 * self.J + 1]), 1.0)
        for number in range(look, look + self.J - 1):
            views.sure.charge(number, self._usd, most)
            views.likely.charge(number, self._usd, rho)
            views.hopeful.charge(number, self._usd, rho)
        for k in range(self.K):
            if self._stale[k] > 0.0:
                self._spread(self.row_of(k), views.away, room)
                share: Real = self._comes[k]
                for edge in range(1, self.J):
                    self._write(views.sure, look, k, edge, -1, share, room)
                    self._write(views.likely, look, k, edge, 0, share, room)
                    self._write(views.hopeful, look, k, edge, 1, share, room)
                self._stale[k] = 0.0
        self.is_stale = False

    cdef void _write(
        self, Looks looks, Index look, Index k, Index edge, Index more, Real comes, Floats room
    ) noexcept:
        right, wrong = self._shares(edge, more, room)
        passes: Real = 1.0 - comes * (1.0 - right)
        looks.set(look + edge - 1, k, passes, 1.0 - comes * (1.0 - wrong))


cdef class Views:
    """The looks at answers as the tables of all verifiers have them.

    Args:
        tables: a table for each verifier; looks are numbered in their order.
        K: number of models.
        away: posterior deviations by which verdicts tell less in `sure`, and more in `hopeful`;
            apart: those by which ρ is higher in `sure`.

    Attributes:
        sure, likely, hopeful: the shares of answers that looks pass, at worst, as expected and at
            best.
    """

    def __init__(self, list tables, Index K, Real away, Real apart):
        L: Index = sum([table.J - 1 for table in tables])
        self.sure, self.likely, self.hopeful = Looks(L, K), Looks(L, K), Looks(L, K)
        self.tables, self.away, self.apart = tables, away, apart

    cpdef refresh(self):
        """Compute the shares anew where a table has changed."""
        look: Index = 0
        for one in self.tables:
            table: VerdictTable = one
            if table.is_stale:
                table.show(look, self)
            look += table.J - 1


cdef Real bounded(Real reward) noexcept:
    return min(max(reward, LEAST_CHANCE), 1.0 - LEAST_CHANCE)
