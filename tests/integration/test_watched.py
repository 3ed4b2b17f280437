"""What operators read of running processes: metrics of a fresh worker, gateway and dashboard, and a
worker's log from its start over a rebalance to its end.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from commands.broker.wire import free_ports
from streams.service.worker_metrics import OUTCOMES
from tests.integration.service import PATIENCE, ROOT, RunningService, Worker, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")
COMMANDS = {
    "worker": ("PB_WEB_PORT", "commands.cli.__main__ worker"),
    "gateway": ("PB_GATEWAY_PORT", "commands.cli.__main__ gateway"),
    "dashboard": ("PB_DASHBOARD_PORT", "commands.cli.__main__ dashboard"),
}
"""Ports and commands, as programs of their own (see `forked.py`): what they import is shown."""
LABELS = {
    *("topic", "partition", "reason", "outcome", "what", "status", "le"),
    *("version", "python", "faust_streaming", "aiokafka", "core"),
}
"""The labels of everything that begins with `pb_`; none of them has a second name."""
LIFE = ("assigned", "recovered", "ready", "stopping")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Create the topics of a service in which nothing has happened yet."""
    folder = Path(tmp_path_factory.mktemp("watched"))
    async with running_service(kafka, folder, partitions=2) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scraped(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Metric]]:
    """Scrape one of each kind as soon as it answers."""
    found = {}
    for name, (port_setting, module) in COMMANDS.items():
        (port,) = free_ports(1)
        log = Path(tmp_path_factory.mktemp(name)) / "log"
        process = Worker(service.settings, log, {port_setting: str(port)}, module)
        service.workers.append(process)
        async with asyncio.timeout(PATIENCE):
            while (text := await asyncio.to_thread(scrape, port)) is None:
                assert process.running, process.tail()
                await asyncio.sleep(0.1)
        found[name] = list(text_string_to_metric_families(text))
        process.terminate()
        await asyncio.to_thread(process.process.wait, PATIENCE)
    return found


def scrape(port: int) -> str | None:
    """Return what a process shows, or None while it does not listen."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


@pytest.mark.parametrize("kind", COMMANDS)
async def test_a_process_says_which_build_it_is_and_what_it_takes(
    scraped: dict[str, list[Metric]], kind: str
) -> None:
    names = {family.name for family in scraped[kind]}
    assert {"pb_build_info", "process_cpu_seconds", "process_resident_memory_bytes"} <= names
    assert "python_info" in names
    (build,) = (family for family in scraped[kind] if family.name == "pb_build_info")
    # A gateway has no use for the core; a dashboard reads declarations of pools as it does.
    expected = "none" if kind == "gateway" else "compiled"
    assert [sample.labels["core"] for sample in build.samples] == [expected]


@pytest.mark.parametrize("kind", COMMANDS)
async def test_every_counter_and_histogram_has_series_before_anything_happens(
    scraped: dict[str, list[Metric]], kind: str
) -> None:
    counting = [one for one in scraped[kind] if one.type in ("counter", "histogram")]
    assert [one.name for one in counting if not one.samples] == []


async def test_latencies_are_histograms(scraped: dict[str, list[Metric]]) -> None:
    types = {one.name: one.type for families in scraped.values() for one in families}
    for name in ("pb_event_seconds", "pb_encode_seconds", "pb_gateway_seconds"):
        assert types[name] == "histogram"


async def test_labels_are_alike_everywhere(scraped: dict[str, list[Metric]]) -> None:
    ours = [
        sample
        for families in scraped.values()
        for one in families
        if one.name.startswith("pb_")
        for sample in one.samples
    ]
    assert {label for sample in ours for label in sample.labels} <= LABELS
    topics = {sample.labels["topic"] for sample in ours if "topic" in sample.labels}
    assert topics == {"routers", "pools", "leases", "kin", "requests", "costs", "rewards"}


def counted() -> set[str]:
    """Return every outcome that the sources count by a literal name."""
    calls = [
        node
        for folder in ("agents", "streams/service")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "count" and node.args
    ]
    first = [call.args[0] for call in calls]
    return {str(one.value) for one in first if isinstance(one, ast.Constant) and one.value}


async def test_every_outcome_that_is_counted_begins_at_zero() -> None:
    assert len(counted()) > 4
    assert counted() <= set(OUTCOMES)


@pytest.mark.parametrize("form", ["json", "text"])
async def test_a_life_is_told_in_one_line_each_and_nothing_ordinary_is_an_error(
    service: RunningService, form: str, kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=2, PB_LOG_FORMAT=form) as fresh:
        module = "commands.cli worker"
        first = fresh.worker(instance="one", module=module)
        await fresh.until(lambda: told(first, form).count("ready") == 1, "ready", poll=False)
        second = fresh.worker(instance="two", module=module)
        await fresh.until(
            lambda: told(first, form).count("assigned") == 2, "a rebalance", poll=False
        )
        await fresh.until(lambda: "ready" in told(second, form), "the second", poll=False)
        for worker in (second, first):
            worker.terminate()
            assert await asyncio.to_thread(worker.process.wait, PATIENCE) == 0
    for worker in (first, second):
        lines = entries(worker, form)
        assert [text for level, text in lines if level in ("warning", "error", "critical")] == []
        assert told(worker, form)[-1] == "stopping"
        assert set(told(worker, form)) == set(LIFE)


def entries(worker: Worker, form: str) -> list[tuple[str, str]]:
    """Return level and message of each line; each must be whole."""
    lines = worker.log.read_text().splitlines()
    if form == "json":
        read = [json.loads(line) for line in lines]
        return [(one["level"], one["message"]) for one in read]
    lines = [line for line in lines if not re.match(r"Worker of |http://", line)]
    found = [re.fullmatch(r"[\d-]{10} [\d:,]+ level=(\w+) logger=\S+ (.*)", line) for line in lines]
    assert all(found), lines
    return [(one[1].lower(), one[2]) for one in found if one]


def told(worker: Worker, form: str) -> list[str]:
    """Return which of the four words the lines begin with, in their order."""
    firsts = [text.split(" ")[0] for _, text in entries(worker, form)]
    return [word for word in firsts if word in LIFE]
