"""The dollar dual: the price of a dollar, in reward, at which a window's winners meet the
budget."""

import numpy as np

from router_state.kernel.numbers.linear cimport EPSILON, total_of
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, behind, view, whole

cdef extern from "vectored.h":
    pass

cdef extern from *:
    """
    VECTORED static void wide_compare(
        double*, double*, double*, double*, double, double, double, Py_ssize_t
    );
    """

cdef Real FIRST_STEP = 1.1
"""First factor by which the search moves the price until the budget lies between two prices; each
further factor is the fourth power of the one before."""
cdef Real FAR = 1e12
"""Price, in reward per dollar, above which the search tries infinity; below 1 ÷ `FAR` it tries
0.
"""
cdef enum:
    MOST_TANGENTS = 100
"""Most tangents of one solution. In 40,000 drawn windows of up to 64 arms none needed more than
18."""


cdef class Options:
    """Scores and expected costs of every arm for each of n contexts.

    Attributes:
        array: K rows of n scores, K rows of n costs, and for the last price the best score of each
            context and the arm that has it; `values` is the kernel's view of it.
        n, K: numbers of contexts and of arms.
        total, dollars: sum of the winners' scores at the last price, and sum of their costs.
    """

    def __init__(self, n, K):
        if n < 1 or K < 1:
            raise ValueError(f"nobody chooses among {K} arms for {n} contexts")
        self.n, self.K, self.total, self.dollars = n, K, 0.0, 0.0
        self.array = np.empty(2 * (K + 1) * n)
        self.values = view(self.array)

    @classmethod
    def of(cls, scores, costs):
        """Return the options with these scores and costs, shape (n, K)."""
        if scores.shape != costs.shape:
            raise ValueError(f"scores of {scores.shape} and costs of {costs.shape}")
        found: Options = cls(*scores.shape)
        for held, given in zip(found.arrays(), (scores, costs), strict=True):
            held[:] = given
        return found

    def arrays(self):
        """Return scores and costs, shape (n, K), to be read and written."""
        size = self.n * self.K
        scores, costs = self.array[:size], self.array[size : 2 * size]
        return scores.reshape(self.K, self.n).T, costs.reshape(self.K, self.n).T

    def cheapest(self):
        """Return the mean over contexts of the cheapest arm's cost."""
        n, K, values = self.n, self.K, self.values
        lowest: Index = 2 * K * n
        for row in range(n):
            values[lowest + row] = values[K * n + row]
        for k in range(K + 1, 2 * K):
            for row in range(n):
                cost: Real = values[k * n + row]
                least: Real = values[lowest + row]
                values[lowest + row] = cost if cost < least else least
        return total_of(values, lowest, n) / n

    def spend(self, Real price):
        """Return the mean cost of what the contexts choose at a price of a dollar."""
        self.choose(price)
        return self.dollars / self.n

    cdef void choose(self, Real price):
        """Let every context choose at a price of a dollar."""
        self.compete(price)
        n: Index = self.n
        scores: Floats = self.values
        costs: Floats = behind(scores, self.K * n)
        won: Floats = behind(costs, (self.K + 1) * n)
        total: Real = 0.0
        dollars: Real = 0.0
        for row in range(n):
            place: Index = whole(won[row]) * n + row
            total += scores[place]
            dollars += costs[place]
        self.total, self.dollars = total, dollars

    cdef void compete(self, Real price):
        """Write of each context the best score at a price of a dollar, and the arm that has it."""
        weight: Real = 1.0
        n, K = self.n, self.K
        # Beyond `FAR` rounding would lose the scores next to the products, so the cheapest arms
        # win.
        if price >= FAR:
            weight, price = 0.0, 1.0
        scores: Floats = self.values
        costs: Floats = behind(scores, K * n)
        best: Floats = behind(costs, K * n)
        won: Floats = behind(best, n)
        for row in range(n):
            best[row] = weight * scores[row] - price * costs[row]
            won[row] = 0.0
        for k in range(1, K):
            compare(behind(scores, k * n), behind(costs, k * n), best, won, k, weight, price, n)

    def price(self, *, Real target, Real start=0.0):
        """Return the smallest λ ≥ 0 at which the contexts' winners (largest scores − λ·costs) cost
        at most `target` on average, or None.

        This λ minimises Σ max(scores − λ·costs) + λ·n·target, which is convex and piecewise
        linear. Two tangents, one on either side of the minimum, intersect closer to it than where
        they touch (Kelley 1960). They intersect at the minimum once no piece is left between them
        or a tangent repeats. So the solution is exact; each tangent takes O(nK).

        Args:
            target: mean cost per context.
            start: first λ to try.
        """
        allowed: Real = target * self.n
        slack: Real = EPSILON * abs(allowed)
        low_total = low_over = high_total = high_over = 0.0
        has_low = has_high = False
        price: Real = min(start, FAR)
        step: Real = FIRST_STEP
        for _ in range(MOST_TANGENTS):
            # First find one price on either side. The factor grows so fast that five tangents
            # reach over ten decades: after a jump λ may be anywhere.
            both = has_low and has_high
            if both:
                price = (low_total - high_total) / (low_over - high_over)
            self.choose(price)
            total: Real = self.total
            over: Real = self.dollars - allowed
            if both:
                again = total == low_total and over == low_over
                again = again or (total == high_total and over == high_over)
                if again or is_lowest(total - price * over, low_total, price * low_over):
                    break
            if over > slack:
                # Even the cheapest arms cost more than the target, so no price of a dollar helps.
                if not both and price >= FAR:
                    return None
                low_total, low_over, has_low = total, over, True
                price = price * step if price * FAR > 1.0 else FAR
            else:
                # At a price of 0 the winners stay within the budget, so a dollar is worth nothing.
                if not both and price <= 0.0:
                    return 0.0
                high_total, high_over, has_high = total, over, True
                price = price / step if price * FAR > 1.0 else 0.0
            step = min(step * step * step * step, FAR)
        return max(0.0, price)


cdef inline Flag is_lowest(Real value, Real total, Real share) noexcept:
    """Tell whether a value is, up to rounding, on the tangent `total` − `share`."""
    return value <= total - share + EPSILON * max(abs(total), abs(share))


cdef void compare "wide_compare"(
    Floats scores, Floats costs, Floats best, Floats won, Real k, Real weight, Real price, Index n
) noexcept:
    """Let the k-th arm win where its score is better than the best so far."""
    for row in range(n):
        value: Real = weight * scores[row] - price * costs[row]
        before: Real = best[row]
        winner: Real = won[row]
        best[row] = value if value > before else before
        won[row] = k if value > before else winner


# For Python, which does not see numbers of C.
globals().update(FAR=FAR)
