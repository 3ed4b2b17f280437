"""Damage in the changelog of a real broker sets its router aside, and all others go on; a fault of
the program ends the worker.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from agents.table import keys
from router_state.packing.framing import frame
from tests.integration.service import RunningService, parsed, request, router, running_service

GOOD = "acme.good"
SEED = 20_054
WRONG = [b"null", b"[]", b"7", b'"text"', b'{"counters": []}', b"{}", b"\x00" * 64, b"\xff" * 8]
"""Contents in a sound frame that no piece has."""


def cut(packed: bytes, random: Random) -> bytes:
    return packed[: random.randrange(len(packed))]


def flipped(packed: bytes, random: Random) -> bytes:
    spoilt = bytearray(packed)
    spoilt[random.randrange(len(spoilt))] ^= random.randrange(1, 256)
    return bytes(spoilt)


def mistyped(packed: bytes, random: Random) -> bytes:
    return frame(random.choice(WRONG))


DAMAGES = (cut, flipped, mistyped)
PIECES = (keys.HEAD, keys.CONFIG, keys.ARM, keys.REQUEST)
SPOILT = {
    f"acme.{damage.__name__}.{kind.decode()}": (damage, kind)
    for damage in DAMAGES
    for kind in PIECES
}
"""By router, how its state is damaged and in which kind of piece."""


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Yield a service with a router for each damage and a sound one, whose worker has left."""
    async with running_service(kafka, tmp_path, partitions=1) as service:
        worker = await service.ready(service.worker())
        for name in (*SPOILT, GOOD):
            await service.send("routers", router(name))
            await service.send("requests", request(name, f"{name}-0"))
        await service.until(lambda: len(service.routes()) > len(SPOILT), "all decisions")
        worker.terminate()
        worker.process.wait(60)
        yield service


async def spoil(service: RunningService) -> None:
    """Write a damaged record over one of each router, as its last owner would have written it."""
    table = (await service.partitions())[0]
    random = Random(SEED)
    for name, (damage, kind) in SPOILT.items():
        start = keys.key(kind, name)
        at = random.choice(sorted(raw for raw in table.records if raw.startswith(start)))
        await service.producer.send_and_wait(
            service.settings.changelog,
            damage(table.records[at], random),
            key=at,
            partition=0,
            headers=[("epoch", b"%d" % table.epoch)],
        )


async def test_drawn_damage_sets_its_router_aside_and_no_other(service: RunningService) -> None:
    await spoil(service)
    worker = await service.ready(service.worker())
    for name in (*SPOILT, GOOD):
        await service.send("requests", request(name, f"{name}-1"))
    await service.until(lambda: service.route(f"{GOOD}-1"), "the decision of the sound router")
    await service.until(lambda: len(service.dead_letters()) == len(SPOILT), "a letter for each")
    assert set(service.reasons()) == {"router_unreadable"}
    answered = {route["router_id"] for route in service.routes() if route["request_id"][-1] == "1"}
    assert answered == {GOOD}

    def told() -> set[str]:
        alerts = [parsed(record.value) for record in service.records["alerts"]]
        return {one["router_id"] for one in alerts if one["kind"] == "router_unreadable"}

    await service.until(lambda: told() == set(SPOILT), "an alert for each")
    assert worker.running


async def test_a_fault_of_the_program_ends_the_worker_and_refuses_nothing(
    service: RunningService,
) -> None:
    worker = service.worker(module="tests.integration.faulty_worker")
    await service.send("requests", request(GOOD, f"{GOOD}-1"))
    await service.until(lambda: not worker.running, "a worker that has ended", poll=False)
    assert worker.process.returncode != 0
    assert "AttributeError: a fault of the program" in worker.tail()
    assert service.dead_letters() == {}
    await service.ready(service.worker())  # the next version of the program has no such fault
    await service.until(lambda: service.route(f"{GOOD}-1"), "the decision after all")
