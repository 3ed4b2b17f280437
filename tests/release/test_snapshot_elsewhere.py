"""A router's learned state goes from one Kafka cluster to another, as a file, and decides there as
it would have here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from commands.broker.local import LocalKafka
from streams.settings import Settings
from tests.integration.commands import add_two, done, done_json, new_service, run, running_worker
from tests.integration.test_snapshot import CONTEXTS, SAME

TRAFFIC = 8


def service(bootstrap: str, log: Path) -> Iterator[Settings]:
    """Run a service without an encoder on a cluster."""
    settings = new_service(bootstrap, "snapshot")
    with running_worker(settings, environment={"PB_ENCODER_BACKEND": "none"}, log=log):
        yield settings


@pytest.fixture(scope="module")
def here(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Return a service whose router has learned something."""
    for settings in service(kafka, tmp_path_factory.mktemp("here") / "worker.log"):
        add_two(settings, "learned")
        done(settings, "budget", "set", "0.002", router="learned")
        # Some choices are random: the state of the generator must go along.
        done(settings, "routers", "set", "learned", "epsilon=0.5")
        decide(settings, "learned", range(TRAFFIC))
        yield settings


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Return a service on a cluster of its own, which has seen nothing."""
    with LocalKafka() as cluster:
        yield from service(cluster.bootstrap, tmp_path_factory.mktemp("elsewhere") / "worker.log")


def decide(settings: Settings, router: str, numbers: range) -> list[dict[str, object]]:
    """Let a router decide requests, each paid and rewarded before the next; return what must not
    depend on the cluster.
    """
    decisions = []
    for number in numbers:
        context = CONTEXTS[number % len(CONTEXTS)]
        made = done_json(
            settings,
            "request",
            "--context",
            "-",
            "--id",
            f"q-{number}",
            stdin=context,
            router=router,
        )
        decisions.append({name: made[name] for name in SAME})
        done(settings, "cost", f"q-{number}", str(0.0005 * (1 + number % 5)), router=router)
        done(
            settings,
            "reward",
            f"q-{number}",
            "0.9" if made["model"] == "large" else "0.4",
            router=router,
        )
    return decisions


def written(settings: Settings) -> dict[str, list[int]]:
    """Return the ends of the declarations and of the changelog."""

    async def ends() -> dict[str, list[int]]:
        async with AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap, enable_auto_commit=False
        ) as consumer:
            found = {}
            for topic in (settings.topic("routers"), settings.changelog):
                places = [TopicPartition(topic, number) for number in range(settings.partitions)]
                found[topic] = list((await consumer.end_offsets(places)).values())
            return found

    return asyncio.run(ends())


def test_a_damaged_file_is_refused_by_the_other_cluster_and_nothing_is_written(
    here: Settings, elsewhere: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "learned.pbs"
    done(here, "snapshot", "export", str(file), router="learned")
    whole, before = file.read_bytes(), written(elsewhere)
    middle = len(whole) // 2
    for spoilt in (
        whole[:middle],
        whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
    ):
        file.write_bytes(spoilt)
        refused = run(elsewhere, "snapshot", "import", str(file), router="learned")
        assert refused.exit_code == 1
        assert "truncated" in refused.output or "damaged" in refused.output
    assert written(elsewhere) == before
    assert done_json(elsewhere, "routers", "list") == []


def test_a_router_decides_on_another_cluster_as_it_would_have_on_the_first(
    here: Settings, elsewhere: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "learned.pbs"
    exported = done_json(here, "snapshot", "export", str(file), router="learned")
    state = done_json(elsewhere, "snapshot", "import", str(file), router="learned")
    assert (state["lambda_t"], state["debt_usd"]) == (exported["lambda_t"], exported["debt_usd"])
    # Learning goes on there as here: each of these decisions follows from the bills and rewards of
    # those before it.
    numbers = range(TRAFFIC, 2 * TRAFFIC)
    there = decide(elsewhere, "learned", numbers)
    assert there == decide(here, "learned", numbers)
    assert len({decision["propensity"] for decision in there}) > 1
    add_two(elsewhere, "fresh")
    done(elsewhere, "budget", "set", "0.002", router="fresh")
    assert decide(elsewhere, "fresh", numbers) != there
    found = done_json(elsewhere, "audit")
    assert found["violations"] == {}, found
