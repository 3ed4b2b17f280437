"""A history played into topics of another prefix, through a real worker."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.paper.history import ROUTER, write_history
from streams.cli import main
from streams.replay.kafka_history import KafkaHistory
from streams.replay.records import export
from streams.settings import Settings
from streams.topics import create_topics
from tests.integration.replay_recording import declaration, start_worker

REQUESTS = 600


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("history")
    write_history(
        folder,
        declared=declaration("live") | {"dimensions": 6},
        models=("small", "middle", "large"),
        contexts=np.column_stack([rng.normal(size=(REQUESTS, 5)), np.ones(REQUESTS)]),
        rewards=np.clip(np.array([0.78, 0.9, 0.94]) + rng.normal(0, 0.05, (REQUESTS, 3)), 0, 1),
        costs=np.array([2.9e-5, 5.3e-4, 1.5e-2]) * rng.lognormal(0, 0.4, (REQUESTS, 3)),
    )
    return folder


@pytest.fixture
def target(kafka: str, tmp_path: Path) -> Iterator[Settings]:
    name = f"into-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=kafka, prefix=f"{name}.", app_id=name)
    asyncio.run(create_topics(settings))
    worker = start_worker(settings, tmp_path / "worker.log")
    try:
        yield settings
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(90)


def command(history: Path, target: Settings, speed: str) -> list[str]:
    into = ["--bootstrap", target.bootstrap, "replay", "--from", str(history), "--router", ROUTER, "--into", target.prefix]
    return [*into, "--speed", speed]


def test_it_never_writes_to_the_history(target: Settings, history: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, command(history, target, "0"), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    with KafkaHistory(target) as played:
        before = export(played, tmp_path / "before")
    into_itself = [
        "--bootstrap",
        target.bootstrap,
        "--prefix",
        target.prefix,
        "replay",
        "--router",
        ROUTER,
        "--into",
        target.prefix,
    ]
    refused = CliRunner().invoke(main, into_itself)
    assert refused.exit_code == 1 and "choose another prefix" in refused.output
    verified = CliRunner().invoke(
        main, ["--bootstrap", target.bootstrap, "--prefix", target.prefix, "replay", "--router", ROUTER, "--verify"]
    )
    assert verified.exit_code == 0, verified.output
    with KafkaHistory(target) as played:
        assert export(played, tmp_path / "after") == before
