"""One service under load and faults, and the proof afterwards that nothing was lost and nothing
counted twice.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from commands.broker.local import LocalKafka
from streams.log.service_topics import create_topics
from streams.settings import Settings
from studies.audit.findings import Findings
from studies.audit.run import audit
from studies.audit.topic_reading import KafkaTopics
from tests.chaos.faults import FAULTS, Pace, RedisServer, Stage
from tests.chaos.load import Load
from tests.chaos.network import Network
from tests.chaos.recompute import Recomputation, differences
from tests.chaos.watch import WatchedService
from tests.integration.service import ANSWERS, SOURCES, recovered

RECOVERS_WITHIN, CATCHES_UP_WITHIN, DRAINS_WITHIN, CALM_SECONDS = 90.0, 20.0, 180.0, 3.0
USUAL = Pace()


@dataclass(slots=True)
class Round:
    """What one fault did.

    Attributes:
        wait: how long a request to a partition that was hit waited for its decision at most,
            seconds; `elsewhere`: to others.
        calm: the same in the seconds before the fault, anywhere.
        recovery: from the end of the fault until every partition had decided again, seconds.
    """

    fault: str
    wait: float
    elsewhere: float
    calm: float
    recovery: float
    duplicates: int


@dataclass(slots=True)
class Outcome:
    """What a session came to; `lost`, `violations` and `differences` must be empty or zero, else
    `evidence` has the topics.
    """

    rounds: list[Round] = field(default_factory=list)
    requests: int = 0
    events: int = 0
    poisoned: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    violations: dict[str, int] = field(default_factory=dict)
    unprovable: dict[str, int] = field(default_factory=dict)
    examples: list[Any] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    evidence: str = ""

    @property
    def clean(self) -> bool:
        """Tell whether nothing was lost, nothing counted twice, and the state is what the events
        make.
        """
        return not (any(self.lost.values()) or self.violations or self.differences)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self) | {"clean": self.clean}


def assert_clean(outcome: Outcome, *, requests: int) -> None:
    """Require that nothing was lost or counted twice in a session of more than so many requests."""
    kinds = ("decisions", "bills", "rewards", "leases", "dead_letters")
    assert outcome.lost == dict.fromkeys(kinds, 0), outcome.evidence
    assert outcome.violations == {}, (outcome.examples, outcome.evidence)
    assert outcome.differences == [], outcome.evidence
    assert outcome.requests > requests


async def play(
    kafka: LocalKafka,
    folder: Path,
    faults: Sequence[str],
    *,
    per_second: float = 100.0,
    routers: int = 64,
    partitions: int = 8,
    session: float = 4.0,
    calm: float = CALM_SECONDS,
    pace: Pace = USUAL,
    burst: int = 1,
    seed: int = 1,
) -> Outcome:
    """Do these faults, one after the other and `calm` seconds apart, to a service under load; then
    prove what it did.
    """
    name = f"chaos-{uuid.uuid4().hex[:8]}"
    settings = Settings(
        bootstrap=kafka.bootstrap, prefix=f"{name}.", app_id=name, partitions=partitions
    )
    await create_topics(settings)
    redis = RedisServer(folder)
    redis.start()
    network = Network(kafka)
    network.start()
    environment = {
        "PB_BOOTSTRAP": network.bootstrap,
        "PB_REDIS_URL": redis.url,
        "PB_SESSION_TIMEOUT": str(session),
        "PB_ORPHAN_WAIT": "20",
        "PB_RETRY_FOR": "60",
    }
    service = WatchedService(settings, folder, environment)
    await service.start()
    try:
        rng = np.random.default_rng(seed)
        stage = Stage(service, kafka, network, redis, rng, session, pace=pace)
        load = Load(service, routers=routers, per_second=per_second, burst=burst, seed=seed)
        outcome = await _under_load(stage, load, faults, calm)
        await asyncio.to_thread(_audit, settings, outcome)
        outcome.differences = await _recompute(service)
        if not outcome.clean:
            outcome.evidence = str(await _keep(service))
        return outcome
    finally:
        await service.stop()
        network.stop()
        redis.stop()


async def _under_load(stage: Stage, load: Load, faults: Sequence[str], calm: float) -> Outcome:
    service, outcome = stage.service, Outcome()
    await stage.set_up(1)
    await load.declare()
    loading = asyncio.create_task(load.run())
    polling = asyncio.create_task(_poll(service))
    supervising = asyncio.create_task(stage.supervise())
    try:
        await until(lambda: len(service.arrivals) == service.settings.partitions, RECOVERS_WITHIN)
        for fault in faults:
            await stage.set_up(FAULTS[fault][1])
            await until(lambda: service.caught_up, CATCHES_UP_WITHIN)
            await asyncio.sleep(calm)
            outcome.rounds.append(await _round(stage, fault, calm))
        await asyncio.sleep(calm)
        load.stop()
        await loading
        assert not load.undelivered, load.undelivered[:3]
        await until(lambda: not any(service.owed(load).values()), DRAINS_WITHIN)
        supervising.cancel()
        for worker in stage.running.values():
            worker.terminate()
        await until(lambda: not any(worker.running for worker in stage.running.values()), 30.0)
    finally:
        for task in (loading, polling, supervising):
            task.cancel()
    outcome.requests, outcome.events, outcome.poisoned = (
        len(service.decided),
        load.sent,
        load.poisoned,
    )
    outcome.lost = service.owed(load) | {"dead_letters": max(0, load.poisoned - service.letters)}
    return outcome


async def _round(stage: Stage, fault: str, calm_seconds: float) -> Round:
    service, began, before = stage.service, time.monotonic(), stage.service.duplicates
    calm = service.longest_wait(stage.everything, began - calm_seconds, began)
    stage.hit = frozenset()
    await FAULTS[fault][0](stage)
    undone = time.monotonic()
    await until(lambda: service.decides_everywhere(undone), RECOVERS_WITHIN)
    recovery = (
        max(next(at for at in arrivals if at > undone) for arrivals in service.arrivals.values())
        - undone
    )
    await until(lambda: service.caught_up, CATCHES_UP_WITHIN)
    ended = time.monotonic()
    wait = service.longest_wait(stage.hit, began - 1.0, ended)
    elsewhere = service.longest_wait(stage.everything - stage.hit, began - 1.0, ended)
    return Round(fault, wait, elsewhere, calm, recovery, service.duplicates - before)


async def _poll(service: WatchedService) -> None:
    while True:
        await service.poll()


async def until(condition: Any, seconds: float) -> bool:
    """Wait for a condition, and tell whether it came."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


def _audit(settings: Settings, outcome: Outcome) -> None:
    with KafkaTopics(settings) as topics:
        findings: Findings = audit(topics, settings)
    found = findings.as_json()
    outcome.violations, outcome.unprovable, outcome.examples = (
        found["violations"],
        found["unprovable"],
        found["examples"],
    )


async def _recompute(service: WatchedService) -> list[str]:
    settings = service.settings
    changelog = await service.log_of(settings.changelog)
    sources = {name: await service.log_of(settings.topic(name)) for name in SOURCES}
    found = []
    for number, records in changelog.items():
        here = {
            name: {record.offset: record for record in log[number]} for name, log in sources.items()
        }
        expected = await Recomputation(settings, number, here).run(records)
        found += differences(recovered(number, records).records, expected)
    return found


async def _keep(service: WatchedService) -> Path:
    """Write every record of an unclean run to a folder that stays."""
    folder = Path(tempfile.mkdtemp(prefix="pb-chaos-"))
    names = {"changelog": service.settings.changelog} | {
        name: service.settings.topic(name) for name in (*SOURCES, *ANSWERS)
    }
    for name, topic in names.items():
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
            for number, records in (await service.log_of(topic)).items():
                for record in records:
                    row = [
                        number,
                        record.offset,
                        record.timestamp,
                        repr(record.key),
                        repr(record.value),
                        repr(record.headers),
                    ]
                    lines.write(json.dumps(row) + "\n")
    for worker in service.workers:
        shutil.copy(worker.log, folder)
    return folder
