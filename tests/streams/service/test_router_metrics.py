"""What a worker shows of a router's periods and sessions on /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import orjson
from prometheus_client.samples import Sample

from ground.boundary import Headers
from schemas import LambdaUpdated, RouteDecided
from streams.service.router_metrics import RouterMetrics


def published(topic: str, *values: dict[str, Any]) -> list[Sample]:
    """Return the metrics after these values were published."""
    metrics = RouterMetrics(10, partition_of=lambda router_id: 0)

    async def nothing(
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> Awaitable[object]:
        return asyncio.sleep(0)

    async def publish() -> None:
        send = metrics.watching(nothing, routes="pb.routes", pacing="pb.lambda")
        for value in values:
            key = value["router_id"].encode()
            await (await send(topic, orjson.dumps(value), key, None, None))

    asyncio.run(publish())
    return [sample for family in metrics.collect() for sample in family.samples]


def shown(**changed: Any) -> dict[str, float]:
    """Return the metrics of the schema's example of a month, changed a little."""
    example: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][2]  # type: ignore[index]
    return {
        sample.name: sample.value
        for sample in published("pb.lambda", {**example, **changed})
        if sample.labels.get("period") == "month"
    }


def test_a_period_is_shown_with_its_money_its_forecast_and_its_end() -> None:
    found = shown()
    of = "pb_router_period"
    assert (found[f"{of}_charged_usd"], found[f"{of}_left_usd"]) == (18.0, 6.0)
    low, high = found[f"{of}_forecast_low_usd"], found[f"{of}_forecast_high_usd"]
    assert (low, found[f"{of}_forecast_usd"], high) == (23.0, 23.98, 25.0)
    ends = datetime.fromtimestamp(found[f"{of}_end_timestamp_seconds"], UTC)
    assert ends == datetime(2026, 12, 1, tzinfo=UTC)


def test_nothing_is_forecast_before_the_first_request() -> None:
    found = shown(decided=0)
    assert found["pb_router_period_left_usd"] == 6.0
    assert not [name for name in found if "forecast" in name]


def test_decisions_under_the_budget_of_a_session_are_counted_once() -> None:
    example: Any = RouteDecided.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    plain = {**example, "repeat": False}
    budgeted = {**plain, "session_left_usd": 0.5}
    limited = {**budgeted, "reason": "session_budget"}
    found = {
        sample.name: sample.value
        for sample in published("pb.routes", plain, budgeted, limited, {**limited, "repeat": True})
    }
    assert found["pb_router_session_budget_decisions_total"] == 2
    assert found["pb_router_session_budget_limited_total"] == 1
    assert found["pb_router_expected_reward_decisions_total"] == 3
