"""A slow encoder only slows; a lost changelog, or a topic that was made again, stops a worker with
words that help.
"""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from streams.log.service_topics import create_topics
from streams.state.lost_state import StateLost, require_state
from tests.integration.service import cost, request, router, running_service

PROMPTS = 60


async def test_a_slow_encoder_holds_events_back_and_loses_neither_its_partitions_nor_a_request(
    kafka: str, tmp_path: Path
) -> None:
    slow = {
        "PB_ENCODER_BACKEND": "static",
        "SLOW_ENCODER_SECONDS": "3",
        "PB_BATCH_SIZE": "24",
        "PB_SOURCE_BUFFER_BYTES": "65536",
    }
    hasty = {"PB_SESSION_TIMEOUT": "2", "PB_HEARTBEAT": "0.5", "PB_STALL_AFTER": "1"}
    async with running_service(kafka, tmp_path, partitions=1, **slow, **hasty) as service:
        worker = await service.ready(service.worker(module="tests.integration.slow_encoder_worker"))
        await service.send("routers", router("home"))
        for number in range(PROMPTS):
            await service.post(
                "requests",
                {"router_id": "home", "request_id": f"r-{number}", "prompt": f"prompt {number}"},
            )
        await service.until(lambda: len(service.routes()) >= PROMPTS, "every decision")
        await service.send("requests", request("home", "last"))
        await service.until(lambda: service.route("last"), "one more")
        assert [route["seq"] for route in service.routes()] == list(range(1, PROMPTS + 2))
        assert worker.running
        assert worker.log.read_text().count("Worker ready") == 1
        assert not service.records["dlq"]


async def test_a_worker_does_not_begin_on_a_changelog_that_is_gone_until_it_is_told_to(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=2) as service:
        settings = service.settings
        first = await service.ready(service.worker())
        await service.send("routers", router("home"))
        await service.send("requests", request("home", "r-1"))
        await service.until(lambda: service.route("r-1"), "a decision")
        first.terminate()
        await service.until(lambda: not first.running, "its end", poll=False)
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        await admin.delete_topics([settings.changelog])
        while settings.changelog in await admin.list_topics():
            await service.poll()
        await admin.close()

        with pytest.raises(StateLost, match=f"the changelog {settings.changelog} is gone"):
            await require_state(settings)
        await create_topics(settings)
        worker = service.worker()
        await service.until(lambda: not worker.running, "its end", poll=False)
        said = worker.tail()
        assert f"the changelog {settings.changelog} is empty" in said
        assert f"--topic {settings.topic('routers')} --reset-offsets --to-earliest" in said

        async with AIOKafkaConsumer(
            bootstrap_servers=kafka, group_id=settings.app_id, enable_auto_commit=False
        ) as group:
            declarations = [
                TopicPartition(settings.topic("routers"), number) for number in range(2)
            ]
            group.assign(declarations)
            await group.commit(dict.fromkeys(declarations, 0))
        await service.ready(service.worker())
        await service.send("requests", request("home", "r-2"))
        await service.until(lambda: service.route("r-2"), "a decision")
        assert (service.route("r-2") or {})["seq"] == 1


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_worker_takes_nothing_from_a_topic_that_was_made_again(
    kafka: str, tmp_path: Path, stopped: bool
) -> None:
    async with running_service(kafka, tmp_path, partitions=1) as service:
        settings = service.settings
        first = await service.ready(service.worker())
        await service.send("routers", router("home"))
        for number in range(5):
            await service.send("requests", request("home", f"r-{number}"))
            await service.send("costs", cost("home", f"r-{number}", 0.001))
        await service.until(lambda: service.lambda_of("home").get("settled") == 5, "its bills")
        if stopped:
            first.terminate()
            await service.until(lambda: not first.running, "its end", poll=False)
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        await admin.delete_topics([settings.topic("costs")])
        while settings.topic("costs") in await admin.list_topics():
            await service.poll()
        await admin.close()
        await create_topics(settings)
        await service.send("requests", request("home", "r-5"))
        await service.send("costs", cost("home", "r-5", 0.001))
        for worker in (service.worker(),) if stopped else (first, service.worker()):
            await service.until(lambda worker=worker: not worker.running, "its end", poll=False)
            assert "ends at offset 1, but was read up to 5" in worker.tail()


async def test_a_topic_without_which_a_group_went_on_is_read_when_it_is_made_again(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=1) as service:
        settings = service.settings
        worker = await service.ready(service.worker())
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        await admin.delete_topics([settings.topic("costs")])
        await admin.close()
        await service.until(
            lambda: worker.log.read_text().count("Worker ready") == 2, "a group without the topic"
        )
        await create_topics(settings)
        await service.send("routers", router("home"))
        await service.send("requests", request("home", "r-1"))
        await service.send("costs", cost("home", "r-1", 0.001))
        await service.until(lambda: service.lambda_of("home").get("settled") == 1, "its bill")


async def test_offsets_of_a_topic_that_is_gone_hold_up_nothing_else(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=1, PB_COMMIT_INTERVAL="60") as service:
        settings = service.settings
        worker = await service.ready(service.worker())
        await service.send("routers", router("home"))
        await service.send("requests", request("home", "r-1"))
        await service.send("costs", cost("home", "r-1", 0.001))
        await service.until(lambda: service.lambda_of("home").get("settled") == 1, "its bill")
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        await admin.delete_topics([settings.topic("costs")])
        await service.until(
            lambda: worker.log.read_text().count("Worker ready") == 2, "a group without the topic"
        )
        committed = await admin.list_consumer_group_offsets(settings.app_id)
        await admin.close()
        place = TopicPartition(settings.topic("requests"), 0)
        assert committed[place].offset == 1
        await service.send("requests", request("home", "r-2"))
        await service.until(lambda: service.route("r-2"), "the next decision")
