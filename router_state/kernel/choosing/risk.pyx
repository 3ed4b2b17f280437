"""Rule out models that may cost too much."""

from router_state.kernel.choosing.candidates cimport COST, Candidates, ROW
from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.numbers.words cimport Floats, Index, Real, of_block, scratch

cdef Real in_flight(models, Candidates seen, Floats beyond):
    """Write by how many dollars a call of each model may exceed its expected cost, then the number
    of calls in flight. Return the sum of the squared dollars by which each model's calls in flight
    may exceed theirs.
    """
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
    """Rule out arms whose bills are too high in one of ten cases.

    A call may cost at most `most` dollars. The calls in flight and this one may together exceed
    their expected costs by the larger of `most` and `each` times their number.

    The risks of models are independent, so their squares add up. An arm that risks too much stays
    eligible if all others surely cost more: some arm must answer the request.

    Args:
        excluded: why arms are excluded already.
        seen: predictions with each arm's expected dollars.
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
        # The arm's next call is at risk as well as its calls in flight.
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
