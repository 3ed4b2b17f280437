"""Every line of the pages that connect an application is run."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from commands.broker.wire import free_ports
from streams.encoder.encoder_by_settings import dimensions_of
from streams.settings import Settings
from tests.integration.forked import programs
from tests.integration.service import PATIENCE, RunningService, Worker, running_service
from tests.pages import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")
PRICES = {"small": (0.1, 0.4), "large": (1.25, 10.0)}


PAGES = tuple(f"docs/how-to/{one}.md" for one in ("connect", "http", "litellm", "bills-and-labels"))


def blocks(language: str, *pages: str) -> list[str]:
    """Return the blocks of a language on these pages, or on all that connect an application."""
    text = "".join((ROOT / page).read_text() for page in pages or PAGES)
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run a worker with the default encoder, and declare the router of the page."""
    async with running_service(
        kafka, tmp_path_factory.mktemp("page"), PB_ENCODER_BACKEND="static"
    ) as running:
        await running.ready(running.worker(instance="one"))
        models = {
            name: {"input_price_per_m": i, "output_price_per_m": o}
            for name, (i, o) in PRICES.items()
        }
        await running.send(
            "routers",
            {
                "router_id": "default",
                "models": models,
                "dimensions": dimensions_of(Settings(encoder_backend="static")),
            },
        )
        await running.send(
            "requests",
            {"router_id": "default", "request_id": "warm", "prompt": "Loads the encoder."},
        )
        await running.until(lambda: running.route("warm"), "a decision")
        yield running


async def ran(service: RunningService, folder: Path, *command: str) -> str:
    """Run a command where the service is, and return what it says."""
    own = {
        "PB_BOOTSTRAP": service.settings.bootstrap,
        "PB_PREFIX": service.settings.prefix,
        "PB_PARTITIONS": str(service.settings.partitions),
    }
    found = (programs(), Path(sys.executable).parent, os.environ["PATH"])
    own |= {
        "PATH": os.pathsep.join(map(str, found)),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**os.environ, **own}, stdout=PIPE, stderr=STDOUT
    )
    async with asyncio.timeout(4 * PATIENCE):  # LiteLLM is seconds of import on an idle core
        said, _ = await process.communicate()
    assert process.returncode == 0, f"{command}\n{said.decode()}"
    return said.decode()


@pytest.mark.parametrize("page", ["docs/how-to/connect.md", "client/README.md"])
async def test_the_client(service: RunningService, tmp_path: Path, page: str) -> None:
    (code,) = blocks("python", page)
    assert "call " in await ran(service, tmp_path, sys.executable, "-c", code)
    await service.until(
        lambda: service.lambda_of("default").get("rewards_applied", 0) >= 1, "the reward"
    )


async def test_http(service: RunningService, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    gateway = Worker(
        service.settings,
        tmp_path / "gateway.log",
        {"PB_GATEWAY_PORT": str(port)},
        "commands.cli gateway",
    )
    service.workers.insert(0, gateway)
    again = [
        "--retry",
        "100",
        "--retry-delay",
        "1",
        "--retry-all-errors",
        "--retry-max-time",
        str(int(PATIENCE)),
    ]
    await ran(service, tmp_path, "curl", "-sf", *again, f"localhost:{port}/readyz")
    (block,) = blocks("http")
    answers = [
        await ran(service, tmp_path, "bash", "-c", line.replace("8090", str(port)))
        for line in block.splitlines()
    ]
    assert len(answers) == 7
    assert not any("urn:paretobandit" in answer for answer in answers[:-1]), answers
    (code,) = (block.replace("8090", str(port)) for block in blocks("http-client"))
    await ran(service, tmp_path, sys.executable, "-c", code)
    await service.until(lambda: service.route("sky-url"), "the decision over HTTP")
    assert '"because"' in answers[3] and '"lambda_t"' in answers[4] and '"openapi"' in answers[6]


async def test_attempts(service: RunningService, tmp_path: Path) -> None:
    page = "docs/how-to/attempts.md"
    (port,) = free_ports(1)
    settings = {"PB_GATEWAY_PORT": str(port)}
    log = tmp_path / "gateway.log"
    service.workers.insert(0, Worker(service.settings, log, settings, "commands.cli gateway"))
    verifiers = {"json": {"usd": 0}, "tests": {"usd": 0, "exact": True}}
    models = {
        name: {"input_price_per_m": i, "output_price_per_m": o} for name, (i, o) in PRICES.items()
    }
    wide = dimensions_of(Settings(encoder_backend="static"))
    declared = {"models": models, "dimensions": wide, "verifiers": verifiers}
    await service.send("routers", {"router_id": "coder", **declared})
    await service.until(lambda: service.lambda_of("coder"), "the router")
    (code,) = blocks("python", page)
    assert "answered by " in await ran(service, tmp_path, sys.executable, "-c", code)
    await service.until(
        lambda: service.lambda_of("coder").get("rewards_applied") == 1, "the reward"
    )
    url = f"http://127.0.0.1:{port}/readyz"
    wait = ["--retry", "100", "--retry-delay", "1", "--retry-all-errors", "--retry-max-time"]
    await ran(service, tmp_path, "curl", "-sf", *wait, str(int(PATIENCE)), url)
    (code,) = (block.replace("8090", str(port)) for block in blocks("http-client", page))
    await ran(service, tmp_path, sys.executable, "-c", code)
    (block,) = blocks("http", page)
    lines = block.replace("8090", str(port)).splitlines()
    answers = [await ran(service, tmp_path, "bash", "-c", line) for line in lines]
    assert '"model"' in answers[0] and not any("urn:paretobandit" in one for one in answers)
    await service.until(
        lambda: service.lambda_of("coder").get("rewards_applied") == 2, "the second reward"
    )
    assert service.lambda_of("coder")["settled"] == 3


async def test_litellm(service: RunningService, tmp_path: Path) -> None:
    (code,) = blocks("litellm")
    said = await ran(
        service,
        tmp_path,
        sys.executable,
        "-W",
        "ignore",
        "-c",
        f"{code}\nimport asyncio\nasyncio.run(main())",
    )
    assert "Hi" in said


async def test_commands(service: RunningService, tmp_path: Path) -> None:
    for line in "".join(blocks("sh")).splitlines():
        said = await ran(service, tmp_path, "bash", "-c", line)
        assert "convert" not in line or '"topic":"rewards"' in said
