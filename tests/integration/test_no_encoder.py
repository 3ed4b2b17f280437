"""A worker whose encoder can't be loaded says so at its start, and refuses prompts instead of
ending.
"""

from pathlib import Path
from typing import Any

import pytest

from commands.broker.wire import free_ports
from tests.integration.service import request, router, running_service
from tests.integration.test_unreadable import readiness

HOME = "acme.prompts"


@pytest.mark.parametrize("dimensions", [26, 385])
async def test_prompts_are_refused_and_contexts_are_routed(
    kafka: str, tmp_path: Path, dimensions: int
) -> None:
    (port,) = free_ports(1)
    environment: dict[str, Any] = {
        "PB_ENCODER_BACKEND": "onnx",
        "PB_ENCODER_PATH": str(tmp_path / "nowhere"),
        "PB_WEB_PORT": str(port),
    }
    async with running_service(kafka, tmp_path, **environment) as service:
        worker = await service.ready(service.worker())
        await service.until(
            lambda: "encoder can't be loaded" in readiness(port)[1],
            "a worker that says so",
            poll=False,
        )
        assert readiness(port)[0] == 503
        await service.send("routers", router(HOME, dimensions=dimensions))
        context = [0.0] * (dimensions - 1) + [1.0]
        await service.send(
            "requests",
            {"router_id": HOME, "request_id": "prompt", "prompt": "Why is the sky blue?"},
        )
        await service.send("requests", request(HOME, "context", context=context))
        await service.until(lambda: service.route("context"), "a decision")
        await service.until(service.dead_letters, "a dead letter")
        assert (
            service.reasons().keys() <= {"encoder_unavailable", "wrong_context"}
            and len(service.dead_letters()) == 1
        )
        assert worker.running
