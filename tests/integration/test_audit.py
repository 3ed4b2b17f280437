"""`pbstream audit` on a real broker: of a running service, of a killed one, and of one whose topics
were tampered with.
"""

import asyncio
import json
import os
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, RecordsToDelete

from studies.audit.findings import Findings, Kind
from studies.audit.run import audit
from studies.audit.served import PATIENCE
from studies.audit.topic_reading import KafkaTopics
from tests.integration.forked import programs
from tests.integration.service import (
    ROOT,
    RunningService,
    cost,
    request,
    reward,
    router,
    running_service,
)
from tests.malformed import malformed

HOMES = [f"home-{number}" for number in range(6)]


def audited(service: RunningService, *options: str) -> tuple[int, dict[str, Any]]:
    """Run the command on the service's topics; return its exit status and what it says."""
    settings = service.settings
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PB_", "KAFKA_"))
    }
    environment |= {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
    }
    environment |= {"PB_PARTITIONS": str(settings.partitions)}
    command = [str(programs() / "pbstream"), "audit", "--json", *options]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


async def findings(service: RunningService, *, now: float) -> Findings:
    """Audit the service's topics, as if looked at then."""

    def run() -> Findings:
        with KafkaTopics(service.settings) as topics:
            return audit(topics, service.settings, now=now)

    return await asyncio.to_thread(run)


async def more_partitions_of_dead_letters(service: RunningService) -> None:
    """Give the dead letters more partitions than the other topics have."""
    admin = AIOKafkaAdminClient(**service.settings.kafka_auth())
    await admin.start()
    try:
        wanted = {service.settings.topic("dlq"): NewPartitions(service.settings.partitions + 3)}
        await admin.create_partitions(wanted)
    finally:
        await admin.close()


async def first_deleted(service: RunningService, topic: str, partition: int) -> None:
    """Delete the first record of a partition, as retention does."""
    admin = AIOKafkaAdminClient(**service.settings.kafka_auth())
    await admin.start()
    try:
        place = TopicPartition(service.settings.topic(topic), partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=1)})
    finally:
        await admin.close()


async def traffic(service: RunningService, first: int, count: int) -> None:
    """Send requests with bills and rewards, some of them twice, and everything that is
    malformed.
    """
    for number in range(first, first + count):
        home, request_id = HOMES[number % len(HOMES)], f"r-{number}"
        await service.post("requests", request(home, request_id, seed=number))
        await service.post("costs", cost(home, request_id, 1e-4 * (1 + number % 7)))
        await service.post("rewards", reward(home, request_id, (number % 10) / 10))
        if number % 10 == 3:
            await service.post("requests", request(home, request_id, seed=number))
            await service.post("rewards", reward(home, request_id, 0.9, source="human"))
    for bad in malformed(HOMES[0]):
        await service.post(
            bad.topic,
            bad.value,
            key=bad.key,
            partition=None if bad.key else service.partition_of(HOMES[0]),
        )


async def test_audit_of_a_service_that_was_killed_is_clean_until_somebody_tampers(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, PB_ORPHAN_WAIT="1") as service:
        await more_partitions_of_dead_letters(service)
        await service.ready(service.worker(instance="one"))
        for number, home in enumerate(HOMES):
            await service.send("routers", router(home, profile=("live", "paper")[number % 2]))
        await traffic(service, 0, 600)
        await service.until(lambda: len(service.routes()) > 200, "some decisions")
        service.workers[0].kill()
        service.worker(instance="one")
        await traffic(service, 600, 300)
        await service.until(
            lambda: len({(r["router_id"], r["seq"]) for r in service.routes()}) == 900,
            "all decisions",
        )
        status, running = audited(service)
        assert (status, running["violations"]) == (0, {}), running["examples"]

        settled = [
            lambda home=home: service.lambda_of(home).get("rewards_applied") == 150
            for home in HOMES
        ]
        await service.until(lambda: all(done() for done in settled), "all rewards")
        service.workers[1].terminate()
        await service.until(lambda: not service.workers[1].running, "an orderly end", poll=False)
        status, stopped = audited(service)
        assert (status, stopped["violations"], stopped["unprovable"]) == (0, {}, {}), stopped[
            "examples"
        ]
        assert stopped["checked"]["decisions"] == 900
        assert stopped["checked"]["routers_recomputed"] == len(HOMES)

        chain = tmp_path / "decisions.chain"
        chained = audited(service, "--chain", str(chain))[1]["checked"]["records_chained"]
        assert chained >= 900
        assert audited(service, "--chain", str(chain))[1]["checked"] == {
            "records_compared": chained
        }

        forged = {**service.routes(HOMES[0])[0], "model": "other", "lambda_t": 0.5}
        await service.send("routes", forged, partition=service.partition_of(HOMES[0]))
        status, tampered = audited(service)
        assert (status, set(tampered["violations"])) == (1, {"decision_contradicts_itself"})
        found = audited(service, "--chain", str(chain))[1]
        assert found["checked"] == {"records_compared": chained, "records_chained": 1}
        await first_deleted(service, "routes", service.partition_of(HOMES[0]))
        status, shorter = audited(service, "--chain", str(chain))
        assert (status, set(shorter["unprovable"])) == (0, {"chained_records_deleted"})


async def test_a_service_in_a_crash_loop_is_told_with_the_time_since_when(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=1) as service:
        worker = await service.ready(service.worker())
        await service.send("routers", router("home"))
        await service.send("requests", request("home", "answered"))
        await service.until(lambda: service.route("answered"), "a decision")
        worker.terminate()
        await service.until(lambda: not worker.running, "the end of the worker", poll=False)
        last = time.time()
        await service.send("requests", request("home", "unanswered"))
        await service.send("costs", cost("home", "answered", 1e-4))
        waits = time.time()
        for _ in range(3):
            crashing = service.worker(instance="same", module="tests.integration.crashing_worker")
            await service.until(lambda one=crashing: not one.running, "a crash", poll=False)
            assert crashing.process.returncode == 3, crashing.tail()
        assert (await findings(service, now=last + PATIENCE / 2)).clean
        found = await findings(service, now=waits + PATIENCE)
        assert found.violations == {Kind.UNSERVED: 1}
        (example,) = [one for one in found.examples if one.kind == Kind.UNSERVED]
        assert "1 costs, 1 requests wait" in example.what
        since = datetime.fromisoformat(example.what.split("since ")[1].split(": ")[0])
        assert int(last) <= since.timestamp() <= waits
        await service.ready(service.worker(instance="same"))
        await service.until(lambda: service.route("unanswered"), "a decision")
        await service.until(lambda: service.lambda_of("home").get("settled"), "a bill")
        assert (await findings(service, now=time.time() + PATIENCE)).clean
