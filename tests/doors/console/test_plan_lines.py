"""Plans, chains and verifiers as sentences."""

from __future__ import annotations

import json
from typing import Any

from doors.console.plan_lines import plan_lines, verifier_lines
from schemas import LambdaUpdated, RouteDecided

CANDIDATES = [
    ("small", 0.6, 0.01, 0.0001),
    ("middle", 0.7, 0.02, 0.001),
    ("large", 0.9, 0.1, 0.004),
]


def decision(**more: Any) -> RouteDecided:
    told = {
        "router_id": "coder",
        "request_id": "r2",
        "model": "small",
        "seq": 2,
        "reason": "ucb",
        "propensity": 0.5,
        "first_propensity": 0.7,
        "expected_reward": 0.86,
        "expected_cost_usd": 0.0012,
        "lambda_t": 0.1,
        "config_offset": 0,
        "decided_at": "2026-11-27T06:00:00Z",
        "repeat": False,
        "candidates": [
            {
                "model": model,
                "mean": mean,
                "bonus": 0.0,
                "penalty": penalty,
                "score": mean - penalty,
                "expected_cost_usd": usd,
                "excluded": None,
            }
            for model, mean, penalty, usd in CANDIDATES
        ],
        **more,
    }
    return RouteDecided.model_validate_json(json.dumps(told))


def step(model: str, usd: float, probability: float | None = None, **more: Any) -> dict[str, Any]:
    found = {"model": model, "expected_cost_usd": usd, **more}
    return found if probability is None else {**found, "probability": probability}


LOOK: dict[str, Any] = {"verify": "tests", "verdict_usd": 0.0, "accept_at": 0.5}


def test_each_call_says_how_often_its_answer_is_returned() -> None:
    plan = [
        step("small", 0.0001, **LOOK),
        step("middle", 0.001, 0.4, **LOOK),
        step("large", 0.004, 0.1),
    ]
    first, second, third, together = plan_lines(decision(plan=plan))
    assert first.endswith("returned from a verdict of 0.5 on: in 60% of cases.")
    assert second.endswith("in 75% of cases.")
    assert third.startswith("Attempt 2: in 10% of such cases, large")
    assert together == (
        "All calls together: reward 0.860 for $0.0012 expected; the best single call, large: "
        "0.900 for $0.004."
    )


def test_a_request_that_follows_another_says_so() -> None:
    chain = {"follows": "r1", "number": 3, "tried": ["small", "middle"]}
    assert plan_lines(decision(chain=chain)) == [
        "It follows r1 as request 3 of its chain; tried before: small, middle."
    ]
    unknown = {"follows": "r0", "number": 1, "known": False}
    assert plan_lines(decision(chain=unknown)) == [
        "It follows r0, which the router does not remember."
    ]
    assert plan_lines(decision()) == []


def state(**more: int) -> LambdaUpdated:
    """Return a router's state with a verifier of two models."""
    share = {"value": 0.9, "low": 0.8, "high": 0.95}
    model = {"passes_right": share, "stops_wrong": share, "verdicts": 90, "labels": 41, **more}
    told = {
        "router_id": "coder",
        "seq": 2,
        "lambda_t": 0.1,
        "spend_usd": 0.0,
        "committed_usd": 0.0,
        "in_flight": 0,
        "decided": 2,
        "settled": 0,
        "expired": 0,
        "rewards_applied": 0,
        "unmatched_cost_usd": 0.0,
        "config_offset": 0,
        "observed_at": "2026-11-27T06:00:00Z",
        "budget_usd_per_request": None,
        "verifiers": [
            {
                "verifier": "tests",
                "usd": 0.0,
                "exact": False,
                "accept_at": 0.5,
                "models": [{"model": name, **model} for name in ("small", "large")],
            }
        ],
    }
    return LambdaUpdated.model_validate_json(json.dumps(told))


def test_verifiers_of_the_plan_say_what_they_pass_and_stop_and_by_how_many_labels() -> None:
    plan = [step("small", 0.0001, **LOOK), step("large", 0.004, 0.4)]
    known = (
        "tests passes 90% (80% to 95%) of small's right answers and stops 90% (80% to 95%) of its "
        "wrong ones, by 41 labels"
    )
    assert verifier_lines(decision(plan=plan), state()) == [known]
    assert verifier_lines(decision(), state()) == []
    of_family = state(family_labels=12, family_verdicts=30)
    assert verifier_lines(decision(plan=plan), of_family) == [
        f"{known} of its own and by what other routers of its family know, which counts for 12 "
        "labels and 30 verdicts"
    ]


def test_a_verifier_that_the_router_does_not_declare_is_named() -> None:
    assert plan_lines(decision(unknown_verifiers=["tets"])) == [
        "The router declares no verifier 'tets', so it looks at nothing."
    ]
