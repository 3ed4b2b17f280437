"""Models as they are, on a real worker: what they can do."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.service import MODELS, RunningService, request, router, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run one worker."""
    async with running_service(kafka, tmp_path_factory.mktemp("real"), PB_ORPHAN_WAIT="2") as one:
        await one.ready(one.worker(instance="one"))
        yield one


async def test_a_request_goes_to_a_model_that_can_or_is_refused_by_its_need(
    service: RunningService, home: str
) -> None:
    offers = {"llama": {"tools": True}, "mistral": {}, "gemini": {"context_window": 1000}}
    models = {name: {**MODELS[name], "offers": offers[name]} for name in MODELS}
    await service.send("routers", router(home, models=models))
    await service.send("requests", request(home, "can", needs={"tools": True}))
    await service.send("requests", request(home, "can't", needs={"vision": True}))
    await service.until(lambda: service.route("can"), "a decision")
    await service.until(service.dead_letters, "a dead letter")
    route = service.route("can")
    assert route and route["model"] == "llama"
    assert {one["model"]: one["excluded"] for one in route["candidates"]} == {
        "llama": None,
        "mistral": "no_tools",
        "gemini": "no_tools",
    }
    ((refused, _),) = service.dead_letters().values()
    assert refused.reason == "no_capable_model" and "vision" in refused.message
