"""Topic `alerts`: what an operator should know about a router.

Key: router_id, raw UTF-8. Version 1. Compatible: new fields, new values of `kind` and `signal`.
Not compatible: a missing field, another unit of `size`.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from schemas.event import Event, documented, optional
from schemas.fields import JsonObject, ModelName, UtcTime
from schemas.reasons import Reason

TOPIC: Final = "alerts"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""


class AlertKind(StrEnum):
    """Name the kind of event that an alert reports."""

    DRIFT = "drift"
    RECOVERED = "recovered"
    CAP_REACHED = "cap_reached"
    BUDGET_SPENT = "budget_spent"
    SESSION_BUDGET = "session_budget"
    GOALS_CONTRADICT = "goals_contradict"
    BUDGET_UNREACHABLE = "budget_unreachable"
    NEWCOMER_UNAFFORDABLE = "newcomer_unaffordable"
    MODEL_DOWN = "model_down"
    MODEL_BACK = "model_back"
    ALL_MODELS_DOWN = "all_models_down"
    LATENCY_UNREACHABLE = "latency_unreachable"
    LATENCY_UNKNOWN = "latency_unknown"
    SOURCE_PARTED = "source_parted"
    FAMILY_PARTED = "family_parted"
    FAMILY_REFUSED = "family_refused"
    VERIFIER_WORTHLESS = "verifier_worthless"
    VERIFIER_PARTED = "verifier_parted"
    MEMORY_NEARLY_FULL = "memory_nearly_full"
    ROUTER_UNREADABLE = "router_unreadable"
    POOL_UNREADABLE = "pool_unreadable"
    FAMILY_UNREADABLE = "family_unreadable"
    SET_ASIDE = "set_aside"
    FEEDBACK_BEHIND = "feedback_behind"
    RAMPED = "ramped"
    FELL_BACK = "fell_back"
    MODEL_RETIRES = "model_retires"
    MODEL_GONE = "model_gone"
    MODEL_REDIRECTED = "model_redirected"


class AlertRaised(Event):
    """Tell of a drift, a recovery, a cap that is used up, or a budget below the cheapest model."""

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "kind": "drift",
                "model": "mistral-large",
                "signal": "reward",
                "direction": "down",
                "size": 0.31,
                "since": "2026-11-21T09:20:00Z",
                "evidence": {"cusum": 17.2, "limit": 16.0, "rewards": 41},
                "observed_at": "2026-11-21T09:31:00Z",
            },
            {
                "router_id": "acme.chat",
                "kind": "cap_reached",
                "direction": "up",
                "size": 1.0,
                "since": "2026-11-21T09:00:00Z",
                "evidence": {"period": "hour", "cap_usd": 5.0, "mode": "soft"},
                "observed_at": "2026-11-21T09:31:00Z",
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {"router_id": "acme.chat", "kind": "drift"},
            Reason.INVALID_FIELD: {
                "router_id": "acme.chat",
                "kind": "mood",
                "direction": "down",
                "size": 0.31,
                "since": "2026-11-21T09:20:00Z",
                "evidence": {},
                "observed_at": "2026-11-21T09:31:00Z",
            },
        },
    )

    kind: AlertKind
    model: ModelName | None = optional("The model it is about; absent: the whole router")
    signal: Literal["reward", "cost", "latency"] | None = optional(
        "What drifted: quality, cost per listed price, or seconds"
    )
    direction: Literal["up", "down"]
    size: Annotated[
        float,
        Field(
            description="drift, recovered: change of the mean, in units of the signal; "
            "cap_reached: "
            "spend ÷ cap; "
            "budget_unreachable: expected cost of the cheapest model ÷ budget; "
            "newcomer_unaffordable: of the newcomer ÷ budget; "
            "model_down: failures in a row; model_back: seconds that it was down; "
            "all_models_down: models; "
            "budget_spent: charged ÷ budget of the period; "
            "session_budget: charged ÷ budget of the session; "
            "goals_contradict: floor of rewards − expected reward; "
            "latency_unreachable: expected ÷ target, in seconds or in slow calls; "
            "latency_unknown: answers in a row that told no time; "
            "ramped, fell_back: share that is routed from now on; "
            "model_retires: days that are left; model_gone: calls that found it gone; "
            "model_redirected: answers of another model; "
            "source_parted: offset of the judge's labels; "
            "family_parted: 1 − slope of the router's coefficients on those of its family; "
            "family_refused: 1; "
            "verifier_worthless: US dollars a day that its verdicts cost, and what followed them; "
            "verifier_parted: change of the separation; "
            "feedback_behind: seconds that the oldest bill or label has waited"
        ),
    ]
    since: UtcTime
    evidence: JsonObject
    observed_at: UtcTime
