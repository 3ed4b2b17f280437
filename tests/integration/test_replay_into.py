"""A history played into topics of another prefix, through a real worker, with the player killed in
between.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from benchmarks.history import ROUTER, write_history
from commands.cli import main
from schemas.routers import ModelDeclared, RouterDeclared
from streams.settings import Settings
from studies.history.folders import export
from studies.history.kafka_history import KafkaHistory
from studies.history.records import partitions_of
from studies.simulate.target import DeclarationRefused, Target
from tests.integration.commands import new_service
from tests.integration.forked import programs
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
    settings = new_service(kafka, "into", partitions=8)
    worker = start_worker(settings, tmp_path / "worker.log")
    try:
        yield settings
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(90)


def command(history: Path, target: Settings, speed: str) -> list[str]:
    into = [
        "--bootstrap",
        target.bootstrap,
        "replay",
        "--from",
        str(history),
        "--router",
        ROUTER,
        "--into",
        target.prefix,
    ]
    return [*into, "--speed", speed]


def ids(history: KafkaHistory, topic: str) -> list[str]:
    return [
        orjson.loads(record.value or b"")["request_id"]
        for part in history.partitions()
        for record in history.read(topic, part)
    ]


def killed(history: Path, target: Settings, *, after: int, extra: Sequence[str] = ()) -> int:
    """Play at the recorded pace, 20 requests a second; kill the player after so many, and return
    how many it had sent.
    """
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("PB_", "KAFKA_"))
    }
    player = subprocess.Popen(
        [str(programs() / "pbstream"), *command(history, target, "1"), *extra], env=env
    )
    deadline = time.monotonic() + 200
    while count(target, "requests") < after:
        assert player.poll() is None and time.monotonic() < deadline
    player.kill()
    player.wait()
    return count(target, "requests")


def count(target: Settings, topic: str) -> int:
    with KafkaHistory(target) as played:
        return sum(1 for part in partitions_of(played, ROUTER) for _ in played.read(topic, part))


def test_a_killed_player_goes_on_without_repeating(history: Path, target: Settings) -> None:
    assert killed(history, target, after=REQUESTS // 6) < REQUESTS
    result = CliRunner().invoke(main, command(history, target, "0"), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    wanted = [f"r-{i + 1}" for i in range(REQUESTS)]
    with KafkaHistory(target) as played:
        assert ids(played, "requests") == wanted
        for topic in ("costs", "rewards"):
            assert sorted(ids(played, topic)) == sorted(wanted)


def test_decisions_that_were_published_before_the_player_came_back_are_taken_as_they_are(
    history: Path, target: Settings, tmp_path: Path
) -> None:
    scenario = tmp_path / "budget.yaml"
    scenario.write_text("events: [{kind: budget, usd_per_request: 0.0001, at: 50}]")
    changed = ["--scenario", str(scenario)]
    sent = killed(history, target, after=REQUESTS // 4, extra=changed)
    deadline = time.monotonic() + 60
    while count(target, "routes") < sent:
        assert time.monotonic() < deadline
    result = CliRunner().invoke(
        main, [*command(history, target, "0"), *changed], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    assert (
        f"{REQUESTS - sent:,} requests sent, {sent:,} were there before; {REQUESTS:,} "
        "decided, 0 refused"
    ) in result.output
    with KafkaHistory(target) as played:
        declared = [
            orjson.loads(record.value or b"")
            for part in played.partitions()
            for record in played.read("routers", part)
        ]
    assert [router["budget_usd_per_request"] for router in declared] == [6e-4, 1e-4]


async def test_a_refused_declaration_is_said_and_not_taken_for_declared(target: Settings) -> None:
    nowhere = {"ref": "nowhere", "sha256": "0" * 64}
    prices = {"input_price_per_m": 0.1, "output_price_per_m": 0.4}
    models = {"small": {**prices, "prior": nowhere}}
    router = RouterDeclared.model_validate({"router_id": "any", "models": models, "dimensions": 3})
    async with Target(target, "player") as first:
        await first.read_back()
        await first.declare(router)
        with pytest.raises(DeclarationRefused, match="refuse router player, wrong_prior"):
            async with asyncio.timeout(90):
                while True:
                    await first.answers(0.2)
    async with Target(target, "player") as second:
        await second.read_back()
        assert not second.declares(router)
        # What was refused before this player came is nothing to stop at.
        for _ in range(5):
            assert await second.answers(0.2) == []
        mended = router.model_copy(update={"models": {"small": ModelDeclared(**prices)}})
        offset = await second.declare(mended)
        async with asyncio.timeout(90):
            while second.config_offset < offset:
                await second.answers(0.2)
    async with Target(target, "player") as third:
        await third.read_back()
        assert third.declares(mended)


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
        main,
        [
            "--bootstrap",
            target.bootstrap,
            "--prefix",
            target.prefix,
            "replay",
            "--router",
            ROUTER,
            "--verify",
        ],
    )
    assert verified.exit_code == 0, verified.output
    with KafkaHistory(target) as played:
        assert export(played, tmp_path / "after") == before
