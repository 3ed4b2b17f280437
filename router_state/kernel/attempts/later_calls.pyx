"""The worth of a later call, given that no answer before it passed.

A prompt that is hard for one model is hard for others, too. Let z be by how many deviations an
answer is worse, given its verdict, than was expected of it. After m answers, whose errors have the
correlation ρ with each other and with those of model b, the best linear estimate of b's reward is

    r_b + ρ/(1 + (m − 1)·ρ) · Σz · √(r_b(1 − r_b)).
"""

from libc.math cimport sqrt

from router_state.kernel.attempts.planned_calls cimport LOWEST, Planning
from router_state.kernel.attempts.plans cimport Looks, bounded as sure
from router_state.kernel.choosing.candidates cimport Candidates, MEAN, PENALTY, ROW
from router_state.kernel.numbers.words cimport Floats, Index, Real


cdef class Failures:
    """The answers of one prompt that did not pass.

    Attributes:
        count: how many there are; sum: Σz of them.
    """

    def __init__(self, Index count=0, Real sum=0.0):
        self.count, self.sum = count, sum

    cpdef Real gap(self, Real reward, Real alike):
        """Return the reward that an answer is expected to lose at ρ = 1 to the first order: times ρ
        it is the loss.

        Args:
            reward: what is expected of the answer without that loss; alike: ρ.
        """
        return lost(self.count, self.sum, reward, alike)

    cpdef Failures and_one(self, Real reward, Real given):
        """Return these and one more, of which `reward` was expected, and `given` its verdict is."""
        return Failures(self.count + 1, self.sum + deviation(reward, given))


cdef Real lost(Index count, Real sum, Real reward, Real alike) noexcept:
    """See `Failures.gap`."""
    if not count:
        return 0.0
    r: Real = sure(reward)
    return -sum * sqrt(r * (1.0 - r)) / (1.0 + (count - 1) * alike)


cdef Real deviation(Real reward, Real given) noexcept:
    """Return z of an answer of which `reward` was expected, and `given` its verdict is."""
    r: Real = sure(reward)
    return (sure(given) - r) / sqrt(r * (1.0 - r))


cdef Real given_failed(Real r, Real t, Real fails) noexcept:
    """Return the probability that an answer is right although it did not pass; a look that passes
    wrong answers more often than right ones says nothing.
    """
    return min((1.0 - t) * r / fails, r) if fails > 0.0 else r


cdef further(Planning plans, Index first, Index look, Index second):
    """Return what is better than the second call of a plan if the first answer does not pass:
    (arm, look, arm), the last called if the other does not pass, either; None: nothing.

    Expectations alone decide, so a plan's propensity is that of its first two calls.
    """
    seen: Candidates = plans.seen
    looks: Looks = plans.sure
    if not (0 <= look < looks.L and max(first, second) < min(seen.K, looks.K)):
        raise IndexError(f"there is no look {look} at {first}")
    values: Floats = seen._values
    r: Real = sure(values[ROW * first + MEAN])
    t: Real = looks.passes(look, first)
    fails: Real = 1.0 - t * r - looks.slips(look, first) * (1.0 - r)
    failures: Failures = Failures().and_one(r, given_failed(r, t, fails))
    alike: Real = looks.alike(look)
    then: Index = -1
    most: Real = LOWEST
    for k in range(seen.K):
        if k != first and k != second and plans.is_open(k) and looks.is_known(k):
            worth: Real = after(values, k, failures, alike) - values[ROW * k + PENALTY]
            if worth > most:
                most, then = worth, k
    best: Real = after(values, second, failures, alike) - values[ROW * second + PENALTY]
    found = None
    for k in range(seen.K):
        last: Index = then if k == second else second
        if k == first or last < 0 or not (plans.is_open(k) and looks.is_known(k)):
            continue
        mean: Real = after(values, k, failures, alike)
        own: Real = sure(mean)
        for number in range(looks.L):
            fee: Real = looks.fee(look) + looks.fee(number)
            if not plans.allows(number) or not plans.pays_three(first, k, last, fee):
                continue
            t = looks.passes(number, k)
            fails = 1.0 - t * own - looks.slips(number, k) * (1.0 - own)
            both: Failures = failures.and_one(
                values[ROW * k + MEAN], given_failed(own, t, fails)
            )
            value: Real = mean - (1.0 - t) * own - values[ROW * k + PENALTY]
            value -= plans.per_dollar * looks.fee(number)
            value += fails * (
                after(values, last, both, looks.alike(number)) - values[ROW * last + PENALTY]
            )
            if value > best:
                best, found = value, (k, number, last)
    return found


cdef Real after(Floats values, Index k, Failures failures, Real alike):
    """Return the expected reward of an arm after failures."""
    mean: Real = values[ROW * k + MEAN]
    return mean - alike * failures.gap(mean, alike)
