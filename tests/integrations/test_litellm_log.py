"""What LiteLLM itself logs of calls is what the golden payloads say, and is billed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.integrations.convert import convert, finder_of
from streams.integrations.found import Defaults

GOLDEN = Path(__file__).parent / "golden" / "litellm.ndjson"


def test_golden_payloads_have_fields_of_the_whole_schema_only(litellm: Any) -> None:
    from litellm.types.utils import StandardLoggingMetadata, StandardLoggingPayload

    for line in GOLDEN.read_text().splitlines():
        payload = json.loads(line)
        assert payload.keys() <= StandardLoggingPayload.__annotations__.keys()
        assert payload["metadata"].keys() <= StandardLoggingMetadata.__annotations__.keys()


async def test_a_call_without_a_known_price_is_billed_in_tokens(
    litellm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litellm.integrations.custom_logger import CustomLogger

    logged: asyncio.Queue[Any] = asyncio.Queue()

    class Logger(CustomLogger):  # type: ignore[misc]
        async def async_log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            logged.put_nowait(kwargs["standard_logging_object"])

    monkeypatch.setattr(litellm, "callbacks", [Logger()])
    bills = []
    for model in ("openai/self-hosted", "openai/gpt-4o-mini"):
        await litellm.acompletion(
            model, [{"role": "user", "content": "Hi"}], mock_response="Hello", api_key="none"
        )
        payload = await asyncio.wait_for(logged.get(), 30)
        ((_, bill),) = convert(orjson.dumps(payload), finder_of("litellm", Defaults("default")))
        bills.append(bill.model_dump(exclude_none=True))
    assert "cost_usd" not in bills[0]
    assert (bills[0]["input_tokens"], bills[0]["output_tokens"]) == (10, 20)
    assert bills[1]["cost_usd"] == pytest.approx(10 * 0.15e-6 + 20 * 0.6e-6)
