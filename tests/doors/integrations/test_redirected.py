"""Who answered, as traces and logs say it: only another model is a redirect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doors.integrations.exporters import CALL, LOGGED, exported, span
from tests.doors.integrations.test_foreign_items import bills, of

NAMES: list[tuple[str, str | None, str | None, str | None, str | None]] = [
    # provider, host, called, answered, and what is told
    ("openai", None, "gpt-4o", "gpt-4o-2024-08-06", None),
    ("openai", None, "gpt-4-0314", "gpt-4-0613", "gpt-4-0613"),
    ("openai", "api.openai.com", "gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-4o-mini-2024-07-18"),
    ("openai", "vllm.internal", "prod", "meta/llama-3", None),
    ("azure", None, "my-deployment", "gpt-4o-2024-08-06", None),
    ("anthropic", None, "claude-3-opus-latest", "claude-opus-4-1", "claude-opus-4-1"),
    ("anthropic", None, "claude-3-opus", None, None),
    ("anthropic", None, None, "claude-3-opus", None),
    ("openrouter", None, "openrouter/auto", "anthropic/claude-opus-4", None),
]


def given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize(("provider", "host", "called", "answered", "told"), NAMES)
@pytest.mark.parametrize("key", ["gen_ai.provider.name", "gen_ai.system"])
def test_a_span_says_who_answered(
    key: str,
    provider: str,
    host: str | None,
    called: str | None,
    answered: str | None,
    told: str | None,
) -> None:
    names = {"gen_ai.request.model": called, "gen_ai.response.model": answered}
    attributes = CALL | {key: provider} | given(**names, **{"server.address": host})
    (bill,) = bills(of("otel", exported(span(attributes))))
    assert bill.get("answered_by") == told
    # A call that failed was answered by nobody.
    failed = span(attributes | {"error.type": "timeout"})
    (bill,) = bills(of("otel", exported(failed)))
    assert "answered_by" not in bill


@pytest.mark.parametrize(("provider", "host", "called", "answered", "told"), NAMES)
def test_litellms_log_says_who_answered(
    provider: str, host: str | None, called: str | None, answered: str | None, told: str | None
) -> None:
    fields = given(model=called, custom_llm_provider=provider, api_base=host)
    payload = {**LOGGED, **fields, "response": given(model=answered)}
    (bill,) = bills(of("litellm", payload))
    assert bill.get("answered_by") == told and bill["cost_usd"] == 0.01


@pytest.mark.parametrize("response", [None, "redacted-by-litellm", [], {"model": 5}, {"model": ""}])
def test_a_log_without_the_answers_name_is_a_bill_all_the_same(response: Any) -> None:
    payload = {**LOGGED, "model": "gpt-4o", "custom_llm_provider": "openai", "response": response}
    (bill,) = bills(of("litellm", payload))
    assert "answered_by" not in bill
