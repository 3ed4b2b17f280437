"""What a worker shows of a router's periods on /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import orjson

from ground.boundary import Headers
from schemas import LambdaUpdated
from streams.service.router_metrics import RouterMetrics


def shown(**changed: Any) -> dict[str, float]:
    """Return the metrics of the schema's example of a month, changed a little."""
    example: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][2]  # type: ignore[index]
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
        value = orjson.dumps({**example, **changed})
        await (await send("pb.lambda", value, b"acme.shop", None, None))

    asyncio.run(publish())
    return {
        sample.name: sample.value
        for family in metrics.collect()
        for sample in family.samples
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
