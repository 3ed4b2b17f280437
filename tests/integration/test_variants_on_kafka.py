"""Variants, long inputs and ends of models on a real worker: what is decided, what a crash and an
audit find."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from paretobandit_client import Router
from router_state.record import NOT_LEARNED
from router_state.state import invariants
from tests.integration.commands import done, done_json
from tests.integration.service import (
    MODELS,
    PATIENCE,
    RunningService,
    cost,
    request,
    reward,
    router,
    running_service,
)

HOME = "acme.think"
HIGH = {"reasoning_effort": "high"}
LONG = [{"input_tokens": 1000, "input_price_per_m": 5.0, "output_price_per_m": 20.0}]


def declared(**changed: Any) -> dict[str, Any]:
    """Return a router with a variant, a model with prices of long inputs, and one that retires."""
    end = (datetime.now(UTC) + timedelta(days=10)).date().isoformat()
    models = {
        **MODELS,
        "gemini": {**MODELS["gemini"], "price_above": LONG},
        "gemini-high": {**MODELS["gemini"], "variant_of": "gemini", "params": HIGH},
        "llama": {**MODELS["llama"], "retires_at": end},
    }
    return router(HOME, models={**models, **changed})


async def settled(service: RunningService, count: int) -> None:
    await service.until(
        lambda: service.lambda_of(HOME).get("settled") == count, f"{count} requests with a bill"
    )


def alerts(service: RunningService) -> dict[str, Any]:
    """Return the alerts so far, by kind."""
    found = [json.loads(record.value) for record in service.records["alerts"]]
    return {alert["kind"]: alert for alert in found}


async def test_variants_are_called_and_models_end_across_a_crash(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path) as service:
        worker = await service.ready(service.worker())
        await service.send("routers", declared())
        settings = service.settings
        options: dict[str, Any] = {"bootstrap": settings.bootstrap, "prefix": settings.prefix}
        context = request(HOME, "x", seed=1)["context"]
        async with Router(HOME, **options, timeout=PATIENCE, connect_timeout=PATIENCE) as app:
            one = await app.route(context=context, allowed_models=["gemini-high"], request_id="v")
            assert one.call == ("gemini", HIGH) and one.model == "gemini-high"
            await one.cost(cost_usd=0.001, answered_by="gemini-2026-11-01")
            await one.reward(0.75, source="judge")
            others = ["gemini", "gemini-high", "llama"]
            free = await app.route(context=context, request_id="free", allowed_models=others)
            for name in (free.model, *free.fallbacks):
                assert free.call_of(name).params == (HIGH if name == "gemini-high" else {})
            await free.cost(cost_usd=0.0)
        # A long input is billed by its own prices.
        allowed = {"allowed_models": ["gemini"]}
        await service.send("requests", request(HOME, "long", seed=2, **allowed))
        tokens = {"input_tokens": 2000, "output_tokens": 100}
        bill = {"router_id": HOME, "request_id": "long", **tokens}
        await service.send("costs", bill)
        await settled(service, 3)
        assert abs(service.lambda_of(HOME)["spend_usd"] - (0.001 + 0.01 + 0.002)) < 1e-9
        # Three answers of another model, and a crash between them.
        only = {"allowed_models": ["mistral"]}
        for n in range(3):
            await service.send("requests", request(HOME, f"m{n}", seed=n, **only))
            await service.send("costs", cost(HOME, f"m{n}", 0.001, answered_by="mistral-next"))
            await service.send("rewards", reward(HOME, f"m{n}", 0.0))
            await settled(service, 4 + n)
            if n == 0:
                worker.kill()
                worker = await service.ready(service.worker())
        await service.until(lambda: "model_redirected" in alerts(service), "who answers")
        told = alerts(service)["model_redirected"]
        assert (told["model"], told["evidence"]["answered_by"]) == ("mistral", "mistral-next")
        assert alerts(service)["model_retires"]["model"] == "llama"
        # One that is gone is called no more, until it is declared again.
        await service.send("requests", request(HOME, "g", seed=3, **only))
        await service.send("costs", cost(HOME, "g", 0.0, status="gone"))
        await service.until(
            lambda: service.lambda_of(HOME).get("gone") == ["mistral"], "it is gone"
        )
        assert alerts(service)["model_gone"]["model"] == "mistral"
        await service.send("requests", request(HOME, "after", seed=3))
        await service.until(lambda: service.route("after"), "a decision")
        route = service.route("after")
        assert route is not None
        why = {one["model"]: one["excluded"] for one in route["candidates"]}
        assert why["mistral"] == "gone" and why["gemini"] is None
        explained = await asyncio.to_thread(done, settings, "explain", "v", router=HOME)
        assert 'as gemini with {"reasoning_effort": "high"}' in explained
        assert "answered by gemini-2026-11-01" in explained
        await service.send("routers", declared(llama=MODELS["llama"]))
        await service.until(lambda: "gone" not in service.lambda_of(HOME), "it is declared again")

        engine = await service.engine(HOME)
        invariants.check(engine.state, engine.records)
        labels = [engine.records[f"m{n}"].label for n in range(3)]
        assert {label and label.forgotten for label in labels} == {NOT_LEARNED}
        assert engine.state.arms["mistral"].costs.bills == 0.0
        assert engine.state.rewards_applied == 4
        verdict = await asyncio.to_thread(done_json, settings, "replay", "--verify", router=HOME)
        assert verdict["compared"] == verdict["identical"] and verdict["differences"] == {}
        audited = await asyncio.to_thread(done_json, settings, "audit")
        assert audited["violations"] == {} and "learned" not in audited["unprovable"]
