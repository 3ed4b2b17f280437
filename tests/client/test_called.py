"""How a decided model is called: by its name, or as a variant with parameters."""

from __future__ import annotations

from typing import Any

import pytest

from paretobandit_client.answering import names_itself
from paretobandit_client.attempt import attempts_of
from paretobandit_client.decision import Decision
from paretobandit_client.sent_events import Call, Step, decode_route
from tests.client.test_attempts import Sent

ROUTE = b"""{"router_id":"r","request_id":"q","model":"gpt-x-high","seq":1,"reason":"ucb",
"propensity":1,"expected_reward":0.5,"expected_cost_usd":0.1,"lambda_t":0,"repeat":false,
"decided_at":"2026-11-27T05:00:00Z","fallbacks":["gpt-x","cool","eu"],"variant_of":"gpt-x",
"params":{"reasoning_effort":"high"},"variants":{"cool":{"params":{"temperature":0}},
"eu":{"variant_of":"gpt-x"}}}"""


def decision(sent: Sent | None = None) -> Decision:
    route = decode_route(ROUTE)
    return Decision("q", route.model, False, route, sent or Sent())


def test_a_variant_is_called_by_its_models_name_with_its_parameters() -> None:
    one = decision()
    high = {"reasoning_effort": "high"}
    assert one.call == Call("gpt-x", high)
    found = {name: one.call_of(name) for name in (*one.fallbacks, "unknown")}
    assert found == {
        "gpt-x": ("gpt-x", {}),
        "cool": ("cool", {"temperature": 0}),
        "eu": ("eu", {}),
        "unknown": ("unknown", {}),
    }
    # What a caller changes is its own.
    one.call.params["reasoning_effort"] = "low"
    assert one.call.params == high
    assert Decision("q", "m", True, None, Sent()).call == Call("m", {})


async def test_each_attempt_says_how_it_is_called_and_who_answered_is_reported() -> None:
    sent = Sent()
    one = decision(sent)
    assert one.route is not None
    steps = (Step(model="cool", verify="v", accept_at=0.5), Step(model="gpt-x-high"))
    one.route = type(one.route)(**{**as_fields(one.route), "plan": steps})
    calls = []
    async for attempt in attempts_of(one, sent):
        calls.append(attempt.call)
        await attempt.cost(cost_usd=0.1, answered_by="other")
        await attempt.verdict("v", False)
    assert calls == [("cool", {"temperature": 0}), ("gpt-x", {"reasoning_effort": "high"})]
    assert [bill["answered_by"] for kind, bill in sent.sent if kind == "cost"] == ["other"] * 2


def as_fields(route: Any) -> dict[str, Any]:
    return {name: getattr(route, name) for name in route.__struct_fields__}


@pytest.mark.parametrize(
    ("provider", "host", "told"),
    [
        ("openai", None, True),
        ("openai", "https://api.openai.com/v1", True),
        ("openai", "http://vllm:8000/v1", False),
        ("Anthropic", "http://anywhere", True),
        ("gcp.gemini", None, True),
        ("azure", None, False),
        ("az.ai.openai", None, False),
        ("openrouter", None, False),
        (None, None, False),
        (5, None, False),
    ],
)
def test_only_some_providers_say_which_model_answered(
    provider: object, host: object, told: bool
) -> None:
    assert names_itself(provider, host) is told
