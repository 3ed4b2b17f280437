"""Topics on a real broker: made once, checked with a sentence that says what to run."""

import uuid

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streams.log.service_topics import TopicsNotReady, check_topics, create_topics, topic_specs
from streams.settings import Settings
from tests.integration.counting import until_async


@pytest.fixture
def settings(kafka: str) -> Settings:
    name = f"topics-{uuid.uuid4().hex[:8]}"
    return Settings(bootstrap=kafka, prefix=f"{name}.", app_id=name, partitions=2)


async def test_missing_topics_are_created_once_and_then_pass(settings: Settings) -> None:
    problems = await check_topics(settings)
    assert len(problems) == len(topic_specs(settings))
    assert all("run `pbstream topics create`" in problem for problem in problems)
    assert sorted(await create_topics(settings)) == sorted(
        spec.name for spec in topic_specs(settings)
    )
    assert await check_topics(settings) == []
    assert await create_topics(settings) == []


async def test_other_partition_counts_are_refused(settings: Settings) -> None:
    await create_topics(settings)
    problems = await check_topics(settings.model_copy(update={"partitions": 3}))
    assert any(
        f"{settings.prefix}requests has 2 partitions, PB_PARTITIONS is 3" in problem
        for problem in problems
    )


async def test_a_changelog_that_deletes_or_takes_too_little_is_refused(settings: Settings) -> None:
    await create_topics(settings)
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap)
    await admin.start()
    wrong = {"cleanup.policy": "compact,delete", "max.message.bytes": "1000000"}
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, settings.changelog, wrong)])
    await admin.close()

    async def found() -> int:
        return len(await check_topics(settings))

    # A broker learns of changed settings a moment later.
    await until_async(found, 2)
    policy, size = await check_topics(settings)
    assert "state would vanish" in policy
    assert "takes batches of 1000000 bytes" in size


async def test_a_broker_that_does_not_answer_is_named_with_what_to_do() -> None:
    said = r"no Kafka broker answers at 127\.0\.0\.1:1: start one with `pbstream broker` or set PB_"
    with pytest.raises(TopicsNotReady, match=said):
        await check_topics(Settings(bootstrap="127.0.0.1:1"))
