"""Compute scores and expected costs of every arm for the window of the dual."""

from router_state.kernel.choosing.context cimport require_dimensions
from router_state.kernel.costs.cost_means cimport bounded_exponent
from router_state.kernel.costs.cost_model cimport CostModel
from ground.refusing import NonFiniteInput
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.numbers.elementary cimport exps
from router_state.kernel.numbers.linear cimport add_of, add_two, finite
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, Singles, behind, known, of_block, scratch, singles,
)
from router_state.kernel.pacing.dual cimport Options

cdef extern from "vectored.h":
    pass

cdef extern from *:
    """
    VECTORED static void wide_multiply_all(
        float*, Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, double*
    );
    VECTORED static void wide_add_up(double*, Py_ssize_t, double*);
    VECTORED static void wide_draw_all(double*, Py_ssize_t, double, double, double*, Py_ssize_t);
    VECTORED static void wide_bound_all(double*, Py_ssize_t, double);
    VECTORED static void wide_bill_all(double*, Py_ssize_t, double, double, double*, double*);
    """

cdef enum:
    LANES = 4
"""Number of partial sums that a product computes side by side."""


def options(
    contexts, Index n, Index d, *, rewards, deviations, lots, shifts, models, tokens, prices
):
    """Return present scores and expected costs of every arm for n contexts.

    Args:
        contexts: at least n rows of d.
        deviations: by arm, the deviation of the draw.
        lots: standard normal numbers in place of draws, n rows of K.
        shifts: by arm, a number to be added to all its scores.
        tokens: by context, input tokens that are priced apart.
        prices: by context, its own price of a dollar as a multiple of λ_t.

    Raises:
        NonFiniteInput: a score or a cost is not finite.
    """
    K: Index = len(rewards)
    held: Singles = singles(contexts, n * d)
    if len(lots) < n * K or len(prices) < n or len(tokens) < n:
        raise ValueError("arrays do not fit")
    lot: Floats = known(lots, len(lots))
    own: Floats = known(prices, len(prices))
    said: Floats = known(tokens, len(tokens))
    if not len(models) == len(deviations) == K or (shifts is not None and len(shifts) != K):
        raise ValueError(f"an entry for each of {K} arms is wanted")
    found = Options(n, K)
    values: Floats = found.values
    room = scratch(2 * K * d + (2 + 2 * K) * LANES * n)
    multiply_by_arms(held, n, d, rewards, models, of_block(room), values)
    for k in range(K):
        model: CostModel = models[k]
        shift: Real = 0.0 if shifts is None else shifts[k]
        draw_all(behind(values, k * n), n, shift, deviations[k], behind(lot, k), K)
        bound_all(behind(values, (K + k) * n), n, 0.5 * model.variance())
    if not (finite(values, 0, 2 * n * K) and billed(behind(values, K * n), n, models, said, own)):
        raise NonFiniteInput("a context of the window, or what an arm has learned, is not finite")
    return found


cdef void copy_theta(Regression one, Index d, Floats found):
    """Copy the coefficients of a regression. Raises ValueError if the regression has other
    dimensions.
    """
    require_dimensions(one, d)
    for i in range(d):
        found[i] = one.values[one.at + i]


cdef void multiply_by_arms(
    Singles held, Index n, Index d, rewards, models, Floats thetas, Floats found
):
    """Write θᵀx of n contexts, for the rewards of each arm, then for its bills. `thetas` has room
    for all θ, and behind them for the sums of `multiply_all`.
    """
    K: Index = len(rewards)
    sums: Floats = behind(thetas, 2 * K * d)
    for k in range(K):
        model: CostModel = models[k]
        copy_theta(rewards[k], d, behind(thetas, k * d))
        copy_theta(model.regression, d, behind(thetas, (K + k) * d))
    multiply_all(held, n, d, thetas, 2 * K, sums)
    for k in range(2 * K):
        add_up(behind(sums, k * LANES * n), n, behind(found, k * n))


cdef Flag billed(Floats costs, Index n, models, Floats said, Floats own):
    """Replace the logarithms of n relative costs of each model by dollars; tell whether all are
    finite.
    """
    K: Index = len(models)
    exps(costs, K * n)
    for k in range(K):
        model: CostModel = models[k]
        paid: Real = 1.0 if model.free else model.paid
        factor: Real = model.multiple() * model.list_price * paid
        per_token: Real = model.input_share * model.input_usd * paid
        bill_all(behind(costs, k * n), n, factor, per_token, said, own)
    return finite(costs, 0, K * n)


cdef void multiply_all "wide_multiply_all"(
    Singles held, Index n, Index d, Floats thetas, Index count, Floats sums
) noexcept:
    """Write θᵀx of n contexts for each of `count` θ, as four sums; behind the sums is room for
    eight entries of each context.

    Entries are processed in groups of eight for all contexts, so that a processor's vector holds
    contexts side by side. Two entries are added at a time.
    """
    entries: Floats = behind(sums, count * LANES * n)
    for i in range(count * LANES * n):
        sums[i] = 0.0
    for first in range(0, d, 2 * LANES):
        taken: Index = min(2 * LANES, d - first)
        for row in range(n):
            for i in range(taken):
                entries[i * n + row] = held[row * d + first + i]
        for k in range(count):
            theta: Floats = behind(thetas, k * d + first)
            for lane in range(min(LANES, taken)):
                one: Floats = behind(entries, lane * n)
                sum: Floats = behind(sums, (k * LANES + lane) * n)
                if lane + LANES < taken:
                    other: Floats = behind(one, LANES * n)
                    add_two(theta[lane], one, theta[lane + LANES], other, sum, n)
                else:
                    add_of(theta[lane], one, 0, sum, 0, n)


cdef void add_up "wide_add_up"(Floats sums, Index n, Floats found) noexcept:
    """Write the totals of n times four sums."""
    for row in range(n):
        found[row] = (sums[row] + sums[n + row]) + (sums[2 * n + row] + sums[3 * n + row])


cdef void draw_all "wide_draw_all"(
    Floats scores, Index n, Real shift, Real deviation, Floats lot, Index K
) noexcept:
    """Add a shift and the draws to n scores."""
    for row in range(n):
        scores[row] = scores[row] + shift + deviation * lot[row * K]


cdef void bound_all "wide_bound_all"(Floats exponents, Index n, Real more) noexcept:
    """Add `more` to n logarithms of bills, and clip them."""
    for row in range(n):
        exponents[row] = bounded_exponent(exponents[row] + more)


cdef void bill_all "wide_bill_all"(
    Floats costs, Index n, Real factor, Real per_token, Floats said, Floats own
) noexcept:
    """Replace n relative costs by dollars, with each request's tokens and its own price."""
    for row in range(n):
        costs[row] = (costs[row] * factor + said[row] * per_token) * own[row]
