"""Rule out models that may cost too much."""

from router_state.kernel.choosing.candidates cimport COST, Candidates, ROW
from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.numbers.words cimport Floats, Index, Real, of_block, scratch

cdef Real in_flight(models, Candidates seen, Floats beyond):
    """Write what a call of each model may cost beyond its expectation, then how many are in flight;
    return the square of what these may cost beyond theirs."""
    one: CostModel
    calls: Index = 0
    total: Real = 0.0
    for k in range(len(models)):
        one = models[k]
        beyond[k] = one.more(seen._values[ROW * k + COST])
        calls += one.awaited
        total += (one.awaited * beyond[k]) * (one.awaited * beyond[k])
    beyond[len(models)] = calls
    return total


def within_risk(models, list excluded, Candidates seen, Real most, Real each):
    """Rule out arms that in one of ten cases cost too much: a call more than `most` dollars, or
    calls in flight and one more so many beyond their expectations, or so many for `each` of them.

    The risks of models are independent, so their squares add up. An arm that risks too much stays
    eligible if all others surely cost more, as a request must be answered.

    Args:
        excluded: why arms may not be called before that.
        seen: with the expected dollars of the request at each arm.
    """
    K: Index = len(models)
    if not len(excluded) == seen.K == K:
        raise ValueError(f"{len(excluded)} reasons and {seen.K} costs are not of {K} models")
    one: CostModel
    held = scratch(K + 1)
    beyond: Floats = of_block(held)
    total: Real = in_flight(models, seen, beyond)
    limit: Real = max(most, each * beyond[K])
    found: list[str | None] = excluded
    surely: Real = float("inf")
    likely: Real = surely
    for k in range(K):
        if excluded[k] is not None:
            continue
        one = models[k]
        cost: Real = seen._values[ROW * k + COST]
        # Of each arm its next call is at risk, too.
        more: Real = (2 * one.awaited + 1) * (beyond[k] * beyond[k])
        out_of_reach = one.dear(cost) > most
        if out_of_reach or total + more > limit * limit:
            if found is excluded:
                found = list(excluded)
            found[k] = "out_of_reach" if out_of_reach else "cost_unknown"
            likely = min(likely, cost + beyond[k])
        else:
            surely = min(surely, cost)
    if found is excluded:
        return excluded
    for k in range(K):
        cost = seen._values[ROW * k + COST]
        if excluded[k] is None and cost <= likely and cost + beyond[k] <= surely:
            found[k] = None
    return found
