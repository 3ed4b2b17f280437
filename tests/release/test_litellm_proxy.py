"""LiteLLM's own proxy with the plugin in front of a real service: two entries in its file, calls
over HTTP.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
import yaml

from commands.broker.child import spawn
from commands.broker.wire import free_ports
from streams.encoder.encoder_by_settings import dimensions_of
from streams.settings import Settings
from tests.integration.service import PATIENCE, RunningService, running_service
from tests.pages import ROOT

PROXY = ROOT / ".cache" / "litellm-proxy" / "bin" / "litellm"
SLOW_START = 5
"""How many times as long as usual is waited for it: its imports are seconds of work for an idle
core.
"""
BANDIT = "paretobandit_client.litellm_proxy.bandit"
PRICES = {"small": (0.1, 0.4), "large": (1.25, 10.0)}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """Fail with what to type where the proxy is missing."""
    if not PROXY.exists():
        pytest.fail("LiteLLM's proxy is missing: tools/setup release", pytrace=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run a worker with the default encoder, and declare the router."""
    async with running_service(
        kafka, tmp_path_factory.mktemp("proxy"), PB_ENCODER_BACKEND="static"
    ) as running:
        await running.ready(running.worker(instance="one"))
        await running.send("routers", declared())
        await running.until(lambda: running.lambda_of("default"), "the router")
        yield running


def declared(**more: Any) -> dict[str, Any]:
    """Return the declaration of the router."""
    models = {
        name: {"input_price_per_m": i, "output_price_per_m": o, "onboarding_pulls": 0}
        for name, (i, o) in PRICES.items()
    }
    wide = dimensions_of(Settings(encoder_backend="static"))
    return {"router_id": "default", "models": models, "dimensions": wide, **more}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxy(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """Run the proxy, and yield a client of it."""
    folder = tmp_path_factory.mktemp("litellm")
    (port,) = free_ports(1)
    (folder / "config.yaml").write_text(yaml.safe_dump(config()))
    environment = {
        **os.environ,
        "LITELLM_OFFLINE_MODE": "true",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PB_BOOTSTRAP": service.settings.bootstrap,
        "PB_PREFIX": service.settings.prefix,
        "PB_FALLBACK": "small",
        "PB_TIMEOUT": "10",
        "PB_VERIFIERS": "json=paretobandit_client.is_json",
        "PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "bytecode"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [str(PROXY), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    log = folder / "proxy.log"
    process = spawn(command, log=log, env=environment, cwd=folder)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as client:
            for _ in range(int(SLOW_START * PATIENCE / 0.5)):
                assert process.poll() is None, log.read_text()[-3000:]
                try:
                    if (await client.get("/health/liveliness")).status_code == 200:
                        break
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.5)
            else:
                raise AssertionError(log.read_text()[-3000:])
            yield client
    finally:
        process.kill()
        process.wait()


def config() -> dict[str, Any]:
    """Return the proxy's file: mocked models, and the plugin by its name, twice."""
    models = [
        {
            "model_name": "smart",
            "litellm_params": {
                "model": f"openai/{name}",
                "api_key": "none",
                "mock_response": name,
                "input_cost_per_token": prices[0] / 1e6,
                "output_cost_per_token": prices[1] / 1e6,
            },
        }
        for name, prices in PRICES.items()
    ]
    return {
        "model_list": models,
        "router_settings": {"plugins": [BANDIT]},
        "litellm_settings": {"callbacks": [BANDIT]},
    }


def body(request_id: str, **more: Any) -> dict[str, Any]:
    """Return a call that names its request."""
    said = [{"role": "user", "content": "Why is the sky blue?"}]
    return {"model": "smart", "messages": said, "metadata": {"pb_request_id": request_id}, **more}


async def test_calls_through_the_proxy_are_decided_and_billed(
    service: RunningService, proxy: httpx.AsyncClient
) -> None:
    for number, more in enumerate(({}, {"stream": True})):
        request_id = f"p-{number}-{uuid.uuid4().hex[:6]}"
        answer = await proxy.post("/v1/chat/completions", json=body(request_id, **more))
        assert answer.status_code == 200, answer.text
        await service.until(lambda name=request_id: service.route(name), "a decision")
        route = service.route(request_id)
        assert route is not None
        # A stream comes in pieces of words.
        assert (route["model"] if not more else "[DONE]") in answer.text
        await service.until(
            lambda bills=number + 1: service.lambda_of("default").get("settled") == bills,
            "the bill of the callback",
        )
    books = service.lambda_of("default")
    assert books["spend_usd"] > 0.0 and books["unmatched_cost_usd"] == 0.0


async def test_plans_are_followed_and_the_last_attempt_answers(
    service: RunningService, proxy: httpx.AsyncClient
) -> None:
    before = service.lambda_of("default")
    more = {"verifiers": {"json": {"usd": 0, "exact": True}}, "budget_usd_per_request": 1e-3}
    await service.send("routers", declared(**more))
    await service.until(
        lambda: service.lambda_of("default")["config_offset"] > before["config_offset"], "it"
    )
    followed = {False: 0, True: 0}
    for number in range(300):
        request_id, stream = f"v-{number}-{uuid.uuid4().hex[:6]}", number % 2 == 1
        answer = await proxy.post("/v1/chat/completions", json=body(request_id, stream=stream))
        assert answer.status_code == 200, answer.text
        await service.until(lambda name=request_id: service.route(name), "a decision")
        route = service.route(request_id) or {}
        plan = route.get("plan") or [{"model": route["model"]}]
        # No mocked answer is JSON.
        last = plan[-1]["model"]
        content = answer.text if stream else answer.json()["choices"][0]["message"]["content"]
        assert last[-2:] in content if stream else content == last
        followed[stream] += len(plan) > 1
        if min(followed.values()) > 0:
            break
    assert min(followed.values()) > 0
    decided = before["decided"] + number + 1
    await service.until(lambda: service.lambda_of("default").get("settled") == decided, "the bills")
    await service.until(lambda: service.lambda_of("default")["in_flight"] == 0, "no bill awaited")


async def test_a_service_that_is_away_costs_no_call(
    service: RunningService, proxy: httpx.AsyncClient
) -> None:
    service.workers[-1].kill()
    answer = await proxy.post("/v1/chat/completions", json=body("away"))
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "small"
