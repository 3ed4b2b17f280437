"""The plan of one request: its calls, and what is expected of them."""

from router_state.kernel.attempts.later_calls cimport deviation, further, given_failed, lost
from router_state.kernel.attempts.planned_calls cimport Planning
from router_state.kernel.attempts.plans cimport Looks, bounded
from router_state.kernel.attempts.verdict_table cimport Views
from router_state.kernel.choosing.arm cimport Arm
from router_state.kernel.choosing.candidates cimport COST, Candidates, MEAN
from router_state.kernel.choosing.portfolio cimport Portfolio
from router_state.kernel.given import Step
from router_state.kernel.numbers.randomness cimport Chance
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, behind


def begin_plan(
    Views views,
    list stops,
    Portfolio arms,
    Candidates seen,
    shut,
    Index b,
    Real propensity,
    Real per_dollar,
    Real left_usd,
    Real most_usd,
    Index most_calls,
    Real tried,
    Real looked_usd,
    Chance chance,
):
    """Choose the calls of a request, where the b-th arm's draw is the best, and count the later ones
    as awaited. Return the arm that is called first, the propensity, that of the first call, the
    expected reward and dollars, and the steps; without a plan there are none.

    Args:
        seen, per_dollar, left_usd, most_usd, shut: see `Planning`.
        stops: by look the verifier, the least verdict that passes, and the dollars of a verdict.
        propensity: that of a call of the b-th arm; only used where `most_calls` is 1, so that
            there is nothing to choose.
        tried: see `Planning.choose`.
        looked_usd: dollars that may be spent on a look without consequence for the request.
    """
    views.refresh()
    likely: Looks = views.likely
    if not (len(arms.all) == likely.K == seen.K and len(stops) == likely.L):
        raise ValueError(f"{len(stops)} looks at {seen.K} arms are not {likely.L} at {likely.K}")
    plans = Planning(
        seen, arms.costs, views.sure, views.hopeful, per_dollar, left_usd, most_usd, shut
    )
    k, look, second, looks, first = b, plans.first_look(), -1, True, 1.0
    if most_calls > 1:
        k, look, second, looks, propensity, first = plans.choose(b, tried, chance)
    calls = [(k, look)]
    if second >= 0:
        more = further(plans, k, look, second) if most_calls > 2 else None
        calls += [(second, look)] if more is None else [more[:2], (more[2], look)]
    # An answer that nothing follows is verified only to learn what verdicts mean.
    looks = looks and affords(plans, calls, stops, looked_usd, chance)
    if not looks and len(calls) < 2:
        return k, propensity, first, (0.0, 0.0), ()
    planned, steps = expected(seen, likely, arms.all, calls, stops, looks)
    return k, propensity, first, planned, steps


cdef Flag affords(Planning plans, list calls, list stops, Real looked_usd, Chance chance) except -1:
    """Tell whether there is money for a look at the last answer."""
    usd: Real = stops[calls[len(calls) - 1][1]][2]
    if usd <= 0.0:
        return True
    spent: Real = 0.0
    for k, look in calls:
        fee: Real = stops[look][2]
        spent += plans.seen.cost_usd(k) + fee
    if spent > plans.left_usd:
        return False
    return usd <= looked_usd or chance.next() < looked_usd / usd


cdef tuple expected(
    Candidates seen, Looks looks, list arms, list calls, list stops, Flag looked
):
    """Return the expected reward and dollars of calls, and the steps.

    Args:
        looked: whether the last answer is verified, too.
    """
    total: Real = 0.0
    usd: Real = 0.0
    reached: Real = 1.0
    # The product of ratios is what a plan's record computes, to the bit.
    chance: Real = 1.0
    alike: Real = 0.0
    failed: Real = 0.0
    found = []
    last: Index = len(calls) - 1
    number: Index = 0
    call: tuple
    for call in calls:
        k: Index = call[0]
        look: Index = call[1]
        row: Floats = behind(seen._values, seen.row(k))
        arm: Arm = arms[k]
        if number:
            arm.costs.wait()
        gap: Real = lost(number, failed, row[MEAN], alike)
        mean: Real = row[MEAN] - alike * gap
        verifier, accept_at, fee_usd = stops[look]
        if number == last:
            accept_at = None
            if not looked:
                verifier, fee_usd = None, 0.0
        cost_usd: Real = row[COST]
        # The defaults of a step are left out of what is stored.
        if number:
            step = Step(
                arm.name, cost_usd, arm.price, verifier, accept_at, fee_usd, reached, gap
            )
        else:
            step = Step(arm.name, cost_usd, arm.price, verifier, accept_at, fee_usd)
        found.append(step)
        fee: Real = fee_usd
        usd += chance * row[COST]
        usd += chance * fee
        if number == last:
            total += reached * mean
            break
        r: Real = bounded(mean)
        t: Real = looks.passes(look, k)
        fails: Real = 1.0 - t * r - looks.slips(look, k) * (1.0 - r)
        total += reached * (mean - (1.0 - t) * r)
        chance *= reached * fails / reached if reached > 0.0 else 0.0
        reached *= fails
        failed += deviation(row[MEAN], given_failed(r, t, fails))
        alike = looks.alike(look)
        number += 1
    return (total, usd), tuple(found)
