"""Compute scores and expected costs of every arm for the window of the dual."""

from router_state.kernel.choosing.context cimport require_dimensions
from router_state.kernel.costs.cost_means cimport bounded_exponent
from router_state.kernel.costs.cost_model cimport CostModel
from ground.refusing import NonFiniteInput
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.numbers.elementary cimport exps
from router_state.kernel.numbers.linear cimport finite
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, Singles, behind, known, of_block, scratch, singles,
)
from router_state.kernel.pacing.dual cimport Options

cdef extern from "vectored.h":
    pass

cdef extern from *:
    """
    VECTORED static void wide_widen(float*, Py_ssize_t, double*);
    VECTORED static void wide_multiply_block(double*, Py_ssize_t, double*, double*);
    VECTORED static void wide_draw_all(double*, Py_ssize_t, double, double, double*, Py_ssize_t);
    VECTORED static void wide_bound_all(double*, Py_ssize_t, double);
    VECTORED static void wide_bill_all(double*, Py_ssize_t, double, double, double*, double*);
    """

cdef enum:
    LANES = 4
"""Number of partial sums of a product."""


def options(
    contexts, Index n, Index d, *, rewards, deviations, lots, shifts, models, tokens, prices
):
    """Return present scores and expected costs of every arm for n contexts.

    Args:
        contexts: at least n contexts of d entries in blocks, see `Window.contexts`.
        deviations: by arm, the deviation of the draw.
        lots: standard normal numbers in place of draws, n rows of K.
        shifts: by arm, a number to be added to all its scores.
        tokens: by context, input tokens that are priced apart.
        prices: by context, its own price of a dollar as a multiple of λ_t.

    Raises:
        NonFiniteInput: a score or a cost is not finite.
    """
    K: Index = len(rewards)
    blocks: Index = (n + BLOCK - 1) // BLOCK
    held: Singles = singles(contexts, blocks * BLOCK * d)
    if len(lots) < n * K or len(prices) < n or len(tokens) < n:
        raise ValueError("arrays do not fit")
    lot: Floats = known(lots, len(lots))
    own: Floats = known(prices, len(prices))
    said: Floats = known(tokens, len(tokens))
    if not len(models) == len(deviations) == K or (shifts is not None and len(shifts) != K):
        raise ValueError(f"an entry for each of {K} arms is wanted")
    found = Options(n, K)
    values: Floats = found.values
    room = scratch((2 * K + BLOCK) * d)
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
    for all θ, and behind them for the contexts of a block.
    """
    K: Index = len(rewards)
    block: Floats = behind(thetas, 2 * K * d)
    cdef Real[BLOCK] products
    for k in range(K):
        model: CostModel = models[k]
        copy_theta(rewards[k], d, behind(thetas, k * d))
        copy_theta(model.regression, d, behind(thetas, (K + k) * d))
    for first in range(0, n, BLOCK):
        widen(held + first * d, BLOCK * d, block)
        for k in range(2 * K):
            if first + BLOCK <= n:
                multiply_block(block, d, behind(thetas, k * d), behind(found, k * n + first))
                continue
            multiply_block(block, d, behind(thetas, k * d), products)
            for row in range(n - first):
                found[k * n + first + row] = products[row]


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


cdef void widen "wide_widen"(Singles given, Index n, Floats found) noexcept:
    """Copy n numbers in double precision."""
    for i in range(n):
        found[i] = given[i]


cdef void multiply_block "wide_multiply_block"(
    Floats block, Index d, Floats theta, Floats found
) noexcept:
    """Write θᵀx of a block's contexts, each as four sums; a processor's vector holds the same sum of
    all contexts.
    """
    cdef Real[LANES * BLOCK] sums
    for i in range(LANES * BLOCK):
        sums[i] = 0.0
    first: Index = 0
    while first + LANES <= d:
        for lane in range(LANES):
            for row in range(BLOCK):
                entry: Real = block[BLOCK * (first + lane) + row]
                sums[lane * BLOCK + row] += theta[first + lane] * entry
        first += LANES
    for lane in range(LANES):
        if first + lane < d:
            for row in range(BLOCK):
                entry: Real = block[BLOCK * (first + lane) + row]
                sums[lane * BLOCK + row] += theta[first + lane] * entry
    for row in range(BLOCK):
        half: Real = sums[row] + sums[BLOCK + row]
        found[row] = half + (sums[2 * BLOCK + row] + sums[3 * BLOCK + row])


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
