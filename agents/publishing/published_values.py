"""Encode decisions, states and alerts as the values of their topics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import exp, sqrt
from operator import itemgetter

import orjson
from msgspec import structs

from router_state import registered
from router_state.changes import Alert
from router_state.instants import utc
from router_state.kernel import Candidates
from router_state.newcomers import Newcomers
from router_state.record import RequestRecord
from router_state.router import RouterState
from schemas.alerts import AlertKind, AlertRaised
from schemas.lambdas import Unbooked

PARTS = 1e6
"""Parts per unit: rewards and shares that are published for people to read are rounded to 1 ÷
`PARTS`.
"""
FALLBACKS = 4
"""Most models that a decision names beside the chosen one."""
FAR = 50.0
"""Largest logarithm of a cost's quantile ÷ its median, which a model without informative bills
gets.
"""
TENTH = 1.2816
"""Deviations from the mean beyond which a tenth of a normal distribution lies on either side."""
_SCORE = itemgetter("score")
_COLUMNS = ("model", "mean", "bonus", "penalty", "score", "expected_cost_usd", "excluded")
"""Fields of a candidate, in the order of `Candidates.rows`."""


def route_value(
    router_id: str,
    request_id: str,
    record: RequestRecord,
    *,
    repeat: bool,
    since: str | None = None,
) -> bytes:
    """Return the value of a `pb.routes` record. Candidates are left out once the record has dropped
    them; `since`, the steps before the decision, is left out once the router no longer keeps the
    steps.
    """
    value: dict[str, object] = {
        "router_id": router_id,
        "request_id": request_id,
        "model": record.model,
        "seq": record.seq,
        "reason": record.reason,
        "propensity": record.propensity,
        "expected_reward": record.expected_reward,
        "expected_cost_usd": record.expected_cost_usd,
        "lambda_t": record.lambda_t,
        "config_offset": record.config_offset,
        "decided_at": utc(record.decided_at),
        "repeat": repeat,
    }
    if record.applied is not None:
        value["applied"] = applied = structs.asdict(record.applied)
        if since is not None:
            applied["request"], applied["since"] = record.offset, since
    if record.candidates is not None:
        value["candidates"] = found = _candidates(record.candidates)
        for field, by_arm in registered.candidate_fields(record).items():
            for candidate, said in zip(found, by_arm, strict=True):
                candidate[field] = said
        if fallbacks := _fallbacks(found, record.model):
            value["fallbacks"] = fallbacks
    value |= registered.published(record)
    return orjson.dumps(value, option=orjson.OPT_UTC_Z)


def _fallbacks(candidates: list[dict[str, object]], chosen: str) -> list[object]:
    """Return the models to try if the chosen one does not answer, the best score first."""
    left = [one for one in candidates if one["excluded"] is None and one["model"] != chosen]
    left.sort(key=_SCORE, reverse=True)
    return [one["model"] for one in left[:FALLBACKS]]


def _candidates(seen: Candidates) -> list[dict[str, object]]:
    # One literal for each candidate: this is a tenth of what a request costs.
    unsure = seen.unsure
    if unsure is None:
        return [dict(zip(_COLUMNS, row, strict=True)) for row in seen.rows()]
    shared = _rounded(unsure[0])
    doubts = zip(seen.rows(), unsure[1::3], unsure[2::3], unsure[3::3], strict=True)
    found: list[dict[str, object]] = []
    for (model, mean, bonus, penalty, score, usd, excluded), variance, spread, paid in doubts:
        # Bills are taken to be lognormal: the logarithm of their median is below that of the mean
        # by half the logarithm's variance, and eight of ten bills are within `TENTH` deviations of
        # the median.
        median, tenth = usd * exp(-0.5 * spread), exp(min(TENTH * sqrt(spread), FAR))
        found.append(
            {
                "model": model,
                "mean": mean,
                "bonus": bonus,
                "penalty": penalty,
                "score": score,
                "expected_cost_usd": usd,
                "excluded": excluded,
                "shared": shared,
                "deviation": _rounded(sqrt(abs(variance))),
                "cost_low_usd": median / tenth,
                "cost_high_usd": median * tenth,
                "unpaid": 0.0 if paid == 1.0 else _rounded(1.0 - paid),
            }
        )
    return found


def _rounded(share: float) -> float:
    # This takes a fifth of the time of `round`, which writes the number and reads it again.
    return int(share * PARTS + 0.5) / PARTS


def lambda_value(
    router_id: str,
    state: RouterState,
    *,
    observed_at: datetime,
    applied: Mapping[str, int],
    unbooked: tuple[Unbooked, ...] | None,
    books_age: float = 0.0,
) -> bytes:
    """Return the value of a `pb.lambda` record, see `LambdaUpdated`: the router's pacing state.

    Args:
        books_age: seconds that the oldest feedback has waited; 0: none waits.
    """
    # The value is written directly, not by the schema, which takes six times as long: thousands of
    # routers publish several times a second.
    value = {"router_id": router_id, **_books(state), "observed_at": observed_at}
    value |= state.pacer.terms()
    if state.arms.window is not None:
        value["window"] = state.arms.window.size
    value["applied"] = applied
    for one in state.capabilities:
        value |= one.lambda_fields(observed_at.timestamp())
    if state.newcomers.found:
        value["unaffordable"] = _unaffordable(state.newcomers)
    if books_age > 0.0:
        value["books_age_ms"] = round(1e3 * books_age, 1)
    if unbooked is not None:
        value["unbooked"] = [one.model_dump() for one in unbooked]
    return orjson.dumps(value, option=orjson.OPT_UTC_Z)


def _books(state: RouterState) -> dict[str, object]:
    """Return the price of a dollar, counts and sums of a router."""
    return {
        "seq": state.seq,
        "lambda_t": state.lambda_t,
        "budget_usd_per_request": state.pacer.budget_usd,
        "spend_usd": state.spend_usd,
        "committed_usd": state.committed_usd,
        "in_flight": state.in_flight,
        "decided": state.seq,
        "settled": state.settled,
        "expired": state.expired,
        "rewards_applied": state.rewards_applied,
        "unmatched_cost_usd": state.unmatched_cost_usd,
        "config_offset": state.config.offset,
    }


def _unaffordable(newcomers: Newcomers) -> list[dict[str, object]]:
    """Return the models that the budget can't pay to try."""
    return [
        {
            "model": one.model,
            "expected_cost_usd": one.expected_cost_usd,
            "needed_budget_usd_per_request": one.needed_budget_usd,
        }
        for one in newcomers.found.values()
    ]


def alert_raised(router_id: str, alert: Alert) -> AlertRaised:
    """Return an alert as an event of `pb.alerts`."""
    return AlertRaised(
        router_id=router_id,
        kind=AlertKind(alert.kind),
        model=alert.model,
        signal=alert.signal,
        direction=alert.direction,
        size=alert.size,
        since=utc(alert.since),
        evidence=dict(alert.evidence),
        observed_at=utc(alert.observed_at),
    )
