"""The arms of a router as decisions read them: predictions, draws and scores of all of them."""

from libc.math cimport isfinite, sqrt

from router_state.kernel.choosing.arm cimport Arm
from router_state.kernel.choosing.candidates cimport (
    BONUS, COST, Candidates, EXPONENT, MEAN, PENALTY, ROW, SPREAD, UNSURE, VARIANCE,
)
from router_state.kernel.choosing.context cimport checked, require_dimensions
from router_state.kernel.choosing.sample cimport PosteriorSample
from router_state.kernel.costs.cost_model cimport CostModel
from ground.refusing import NonFiniteInput
from router_state.kernel.learning.estimating import estimate
from router_state.kernel.learning.regression cimport (
    MAX_DECAY_STEPS, RIDGE_FLOOR, Regression, multiply, spread_at,
)
from router_state.kernel.learning.reward_learning cimport learn_reward
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.elementary cimport power
from router_state.kernel.numbers.linear cimport dot
from router_state.kernel.numbers.randomness cimport Chance
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, known, of_block, scratch,
)

cdef Real LEAST_VARIANCE = 1e-12
"""Least xᵀA⁻¹x of a bonus: rounding may leave a negative value."""


cdef class Portfolio:
    """K arms of dimension d, in the order in which they joined.

    Attributes:
        all: the arms.
        rewards, bills: the shared prior of the arms' rewards, and that of their bills.
        sample: the posterior sample that scores use.

    Derived: `names` by position; `row`: positions by name; `regressions` of rewards, `billed` of
    bills, and `costs` by position. `priced` are the regressions of bills of arms that are not
    free. `open` is a list with None for each arm while every arm takes traffic, else None.
    `highest_per_1k` is the highest list price of an arm that takes traffic. `onboarding` and
    `suspect` say whether there is any such arm, `unproven` whether there is one of either.
    """

    def __init__(self, journal, SharedPrior rewards, SharedPrior bills):
        self.d, self.rewards, self.bills = rewards.d, rewards, bills
        if bills.d != rewards.d:
            raise ValueError(f"priors of {rewards.d} and {bills.d} dimensions do not match")
        self.all, self.sample = [], PosteriorSample(rewards.d, journal)
        self.derive()

    cpdef Arm find(self, str name):
        """Return an arm by its name, or None."""
        k = self.row.get(name)
        return None if k is None else self.all[k]

    def derive(self):
        """Derive the values that the hot path reads."""
        arms = self.all
        self.names = tuple([arm.name for arm in arms])
        self.row = {name: k for k, name in enumerate(self.names)}
        self.regressions = [arm.rewards for arm in arms]
        self.costs = [arm.costs for arm in arms]
        self.billed = [costs.regression for costs in self.costs]
        self.priced = [costs.regression for costs in self.costs if not costs.free]
        taking = [arm for arm in arms if arm.retired_at is None]
        self.open = [None] * len(arms) if arms and len(taking) == len(arms) else None
        self.highest_per_1k = max([arm.per_1k for arm in taking], default=0.0)
        self.onboarding = any(arm.pulls_left for arm in arms)
        self.suspect = any(arm.suspicion is not None for arm in arms)
        self.unproven = self.onboarding or self.suspect

    cpdef void played(self, Index k, Index t, Flag pulled):
        """Note that the k-th arm was chosen at clock t, for an onboarding pull or not."""
        if not 0 <= k < len(self.all):
            raise IndexError(f"there is no arm {k} of {len(self.all)}")
        arm: Arm = self.all[k]
        model: CostModel = arm.costs
        arm.last_played = t
        model.awaited += 1
        if pulled:
            arm.pulls_left -= 1
            if arm.pulls_left == 0:
                self.derive()

    cpdef Flag due(self):
        """Tell whether a shared prior must be estimated before the next decision."""
        return self.rewards.is_due() or self.bills.is_due()

    cpdef void serve(self, x, Flag free):
        """Add a decision's context to the posterior sample, and measure its levels again where
        that is due, see `PosteriorSample`.
        """
        if not self.sample.serve(x):
            self.sample.measure(self.regressions, noise=self.rewards.noise, free=free)

    cpdef void estimate_rewards(self, Index t, Real gamma):
        """Let all arms forget until clock t, except those under suspicion, and estimate the shared
        prior of rewards.
        """
        arm: Arm
        for arm in self.all:
            if arm.suspicion is None:
                arm.rewards.forget(t, gamma)
        estimate(self.rewards, self.regressions)

    cpdef learn(self, Arm arm, x, Real reward, Index t, Real gamma, Real now):
        """Let an arm and the shared prior learn a reward at clock t; return the shift that the
        reward reveals, see `learn_reward`.
        """
        one: Regression = arm.rewards
        # The prior fades with every reward. Without a floor, A would lose rank in directions that
        # no context had.
        if one.left_at(t, gamma) < RIDGE_FLOOR:
            self.estimate_rewards(t, gamma)
        shift = learn_reward(one, self.rewards, arm.detector, x, reward, t, gamma, now)
        if self.rewards.late():
            self.estimate_rewards(t, gamma)
        return shift

    cpdef Candidates look(self, x, Real tokens):
        """Return the arms' predictions for a context, shape (d,), last entry the bias 1.0, and for
        `tokens` input tokens that are priced apart.

        Raises:
            WrongContext: another shape or bias, or features out of all proportion.
            NonFiniteInput: a NaN or an infinity in the context or in the regressions.
        """
        seen: Candidates = self._predict(x)
        total: Real = 0.0
        model: CostModel
        for k in range(seen.K):
            model = self.costs[k]
            cost: Real = model.expect(seen._values[ROW * k + EXPONENT], tokens)
            seen._values[ROW * k + COST] = cost
            total += cost
        if not isfinite(total):
            raise NonFiniteInput("what an arm has learned of its costs is not finite")
        return seen

    cpdef Candidates look_at_means(self, x):
        """Return the predictions of `look`, with a model's mean cost in place of its expected
        cost.
        """
        seen: Candidates = self._predict(x)
        model: CostModel
        for k in range(seen.K):
            model = self.costs[k]
            seen._values[ROW * k + COST] = model.ratio * model.list_price
        return seen

    cdef Candidates _predict(self, x):
        """Return the predictions of rewards, and of the logarithms of bills."""
        d: Index = self.d
        held = checked(x, d)
        space: Floats = of_block(held)
        multiply(space, d)
        seen: Candidates = Candidates.__new__(Candidates)
        seen._start(self.names, self.open or [])
        values: Floats = seen._values
        self._require_all(seen)
        if not len(self.regressions) == len(self.billed) == len(self.costs) == seen.K:
            raise ValueError(f"an entry for each of {seen.K} arms is wanted")
        total: Real = 0.0
        one: Regression
        arm: Arm
        for k in range(seen.K):
            row: Index = ROW * k
            one = self.regressions[k]
            require_dimensions(one, d)
            values[row + MEAN] = dot(one.values, one.at, space, 0, d)
            values[row + VARIANCE] = spread_at(one, space)
            one = self.billed[k]
            require_dimensions(one, d)
            values[row + EXPONENT] = dot(one.values, one.at, space, 0, d)
            total += values[row + MEAN] + values[row + VARIANCE] + values[row + EXPONENT]
            if self.suspect:
                arm = self.all[k]
                values[row + MEAN] += arm.offset
        if not isfinite(total):
            raise NonFiniteInput("what an arm has learned is not finite")
        values[ROW * seen.K] = dot(space, 0, known(self.rewards.mean, d), 0, d)
        return seen

    cdef Index _require_all(self, Candidates seen):
        """Return the number of arms. Raises ValueError if the candidates are of other arms."""
        if len(self.all) != seen.K:
            raise ValueError(f"candidates of {seen.K} arms, not of {len(self.all)}")
        return seen.K

    cpdef void draw(self, Candidates seen, Real per_dollar, Chance chance):
        """Draw for a decision: write into the candidates the draws, their variances, the penalties
        of costs at a price of a dollar, and the doubts.
        """
        K: Index = self._require_all(seen)
        if self.sample.K != K:
            raise ValueError(f"a sample of {self.sample.K} arms is not one of {K}")
        rewards, bills, sample = self.rewards, self.bills, self.sample
        arm: Arm
        one: Regression
        model: CostModel
        held = scratch(K)
        space: Floats = of_block(held)
        chance.normals(space, 0, K)
        for k in range(K):
            arm = self.all[k]
            one, model = arm.rewards, arm.costs
            own: Regression = model.regression
            row: Floats = behind(seen._values, ROW * k)
            variance: Real = row[VARIANCE]
            spread: Real = sample.spread(k, variance, rewards.noise, one.decay)
            row[BONUS] = sqrt(spread) * space[k]
            row[PENALTY] = per_dollar * row[COST]
            row[SPREAD] = spread
            row[UNSURE] = rewards.noise * variance / one.decay
            row[UNSURE + 1] = bills.noise * (1.0 + own.values[own.at - 1] / own.decay)
            row[UNSURE + 2] = model.paid

    cpdef void hope(
        self, Candidates seen, Real per_log_price, Index t, Real alpha, Real gamma, Real least
    ):
        """Write into the candidates each arm's bonus α·√(v ÷ max(γ^dt, `least`)) and the penalty
        of its list price (ParetoBandit Eq. 2 and 9). dt counts from the arm's last reward or last
        choice, whichever is later.
        """
        self._require_all(seen)
        arm: Arm
        one: Regression
        for k in range(seen.K):
            arm = self.all[k]
            one = arm.rewards
            row: Floats = behind(seen._values, ROW * k)
            v: Real = row[VARIANCE] / one.decay
            steps: Index = t - max(one.last_update, arm.last_played)
            if steps > 0 and gamma < 1.0:
                v /= max(power(gamma, min(steps, MAX_DECAY_STEPS)), least)
            row[BONUS] = alpha * sqrt(max(v, LEAST_VARIANCE))
            row[PENALTY] = per_log_price * arm.log_price

    def hopeless(self, Candidates seen, Index k, Real budget, Real bills):
        """Return the arms with fewer than `bills` bills that cost more than the budget, and would
        score below the k-th arm even with the largest possible reward.
        """
        self._require_all(seen)
        values: Floats = seen._values
        worth: Real = values[seen.row(k) + MEAN] - values[ROW * k + PENALTY]
        found: list[int] = []
        arm: Arm
        model: CostModel
        for j in range(seen.K):
            if values[ROW * j + COST] > budget and 1.0 - values[ROW * j + PENALTY] < worth:
                arm = self.all[j]
                model = arm.costs
                if model.bills < bills and arm.retired_at is None:
                    found.append(j)
        return found
