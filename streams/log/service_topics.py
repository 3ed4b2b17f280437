"""Create the service's topics, and check at start that they are what a worker needs."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaConnectionError, KafkaError, TopicAlreadyExistsError, for_code

from streams.log.login_refusal import refusal
from streams.settings import Settings

MIB = 2**20
"""Bytes of a mebibyte."""
DAY_MS = 86_400_000
"""Milliseconds of a day."""
# A record of a stale owner must stay beside the record that it shadows, until the next recovery
# has repaired the key.
REPAIR_MS = 300_000
VISIBLE_TRIES = 50
"""Most looks until every broker shows a new topic."""


class TopicsNotReady(Exception):
    """Topics are missing or differ from what a worker needs; one line a problem."""

    reason = "topics_not_ready"
    retriable = False


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Describe one topic: its cleanup policy and the settings that differ from the broker's."""

    name: str
    cleanup: str
    partitions: int
    max_bytes: int = MIB
    settings: Mapping[str, int] = field(default_factory=dict)

    def config(self, min_insync: int) -> dict[str, str]:
        """Return the topic's configuration as the broker wants it."""
        config = {"cleanup.policy": self.cleanup, "min.insync.replicas": str(min_insync)}
        # Room for the batch's and the record's own headers beside a value of the allowed size.
        config["max.message.bytes"] = str(self.max_bytes + 65_536)
        return config | {name: str(value) for name, value in self.settings.items()}


def topic_specs(settings: Settings) -> list[TopicSpec]:
    """Return every topic of the service, the changelog included."""
    n = settings.partitions
    lasting = {"retention.ms": max(7 * DAY_MS, int(settings.context_ttl * 1000))}
    # Compaction leaves the active segment alone: short segments bound what a recovery reads.
    few_keys = {
        "segment.ms": 600_000,
        "max.compaction.lag.ms": 3_600_000,
        "delete.retention.ms": 7 * DAY_MS,
    }
    many_keys = {
        "segment.ms": 3_600_000,
        "delete.retention.ms": 7 * DAY_MS,
        "min.compaction.lag.ms": REPAIR_MS,
    }
    # Decisions can be verified with the declarations that they followed.
    declared = few_keys | {"min.compaction.lag.ms": few_keys["max.compaction.lag.ms"]}
    topic = settings.topic
    return [
        TopicSpec(topic("routers"), "compact", n, 8 * MIB, declared),
        TopicSpec(topic("requests"), "delete", n, 16 * MIB, lasting),
        TopicSpec(topic("routes"), "delete", n, MIB, lasting),
        TopicSpec(topic("costs"), "delete", n, MIB, lasting),
        TopicSpec(topic("rewards"), "delete", n, MIB, lasting),
        TopicSpec(topic("pools"), "compact", n, MIB, few_keys),
        TopicSpec(topic("leases"), "delete", n, MIB, lasting),
        TopicSpec(topic("kin"), "delete", n, 8 * MIB, lasting),
        TopicSpec(topic("families"), "compact", n, 8 * MIB, few_keys),
        TopicSpec(topic("lambda"), "compact", n, MIB, few_keys),
        TopicSpec(topic("alerts"), "delete", n, MIB, lasting),
        TopicSpec(topic("refusals"), "delete", n, MIB, lasting),
        TopicSpec(topic("dlq"), "delete", n, 32 * MIB, {"retention.ms": 30 * DAY_MS}),
        TopicSpec(settings.changelog, "compact", n, settings.changelog_batch_bytes, many_keys),
    ]


async def create_topics(settings: Settings) -> list[str]:
    """Create the topics that are missing, and return their names; those that exist are left as they
    are.

    Raises:
        TopicsNotReady: the broker refused one, with its reason.
    """
    async with _admin(settings) as admin:
        brokers = len((await admin.describe_cluster())["brokers"])
        # More copies than brokers would be refused; three survive the loss of one with `acks=all`.
        copies = settings.replication or min(3, brokers)
        specs = topic_specs(settings)
        config = {spec.name: spec.config(2 if copies >= 3 else 1) for spec in specs}
        new = [
            NewTopic(spec.name, spec.partitions, copies, topic_configs=config[spec.name])
            for spec in specs
        ]
        answer = await admin.create_topics(new)
        await _until_visible(admin, [name for name, code, _ in answer.topic_errors if code == 0])
    created, problems = [], []
    for name, code, message in answer.topic_errors:
        error = for_code(code)
        if code == 0:
            created.append(name)
        elif error is not TopicAlreadyExistsError:
            problems.append(
                f"topic {name} could not be created ({error.__name__}): "
                f"{message or error.description}"
            )
    if problems:
        raise TopicsNotReady("\n".join(problems))
    return created


async def _until_visible(admin: AIOKafkaAdminClient, names: list[str]) -> None:
    """Wait, with a bound, until the broker shows new topics and their leaders."""
    for _ in range(VISIBLE_TRIES):
        # By name, as a cluster may have thousands of others; these exist, so that none is made.
        topics = await admin.describe_topics(names) if names else []
        if all(
            topic["partitions"] and all(one["leader"] >= 0 for one in topic["partitions"])
            for topic in topics
        ):
            return
        await asyncio.sleep(0.1)


async def partition_counts(settings: Settings) -> dict[str, int]:
    """Return how many partitions each topic of the cluster has, of those that the user may see."""
    async with _admin(settings) as admin:
        return await counts_of(admin)


async def cluster_id(settings: Settings) -> str:
    """Return the name by which a Kafka cluster knows itself; "" where it has none."""
    async with _admin(settings) as admin:
        return str((await admin.describe_cluster())["cluster_id"] or "")


async def counts_of(admin: AIOKafkaAdminClient) -> dict[str, int]:
    """Return how many partitions each topic has, of those that the user may see."""
    # Asking for a topic by name would create it where the broker allows that, with the broker's
    # defaults.
    return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}


async def check_topics(settings: Settings) -> list[str]:
    """Return the problems of these topics for a worker, a sentence each."""
    specs = topic_specs(settings)
    # Events of these two topics are not joined by partition.
    free = {settings.topic("alerts"), settings.topic("dlq")}
    problems, present = [], []
    async with _admin(settings) as admin:
        counts = await counts_of(admin)
        for spec in specs:
            count = counts.get(spec.name)
            if count is None:
                problems.append(
                    f"topic {spec.name} does not exist: run `pbstream topics create` (or grant "
                    "DESCRIBE on it, if it does)"
                )
            elif count != spec.partitions and spec.name not in free:
                problems.append(
                    f"topic {spec.name} has {count} partitions, PB_PARTITIONS is "
                    f"{spec.partitions}: set PB_PARTITIONS to "
                    f"{count} if all topics have {count}; else delete the topic, if no worker has "
                    "ever read it, and run `pbstream topics create`"
                )
            else:
                present.append(spec)
        configs = await _configs(admin, [spec.name for spec in present])
    return problems + [
        problem
        for spec in present
        for problem in _misconfigured(spec, configs[spec.name], settings)
    ]


def _misconfigured(
    spec: TopicSpec, config: Mapping[str, str] | str, settings: Settings
) -> list[str]:
    if isinstance(config, str):
        return [f"topic {spec.name} cannot be checked ({config}): grant DESCRIBE_CONFIGS on it"]
    problems = []
    cleanup = config.get("cleanup.policy", "")
    if cleanup != spec.cleanup:
        alter = (
            f"kafka-configs.sh --alter --topic {spec.name} --add-config "
            f"cleanup.policy={spec.cleanup}"
        )
        why = "state would vanish" if spec.cleanup == "compact" else "events would vanish"
        problems.append(
            f"topic {spec.name} has cleanup.policy={cleanup}, not {spec.cleanup} ({why}): run "
            f"`{alter}`"
        )
    limit = int(config.get("max.message.bytes", 0))
    if spec.name == settings.changelog and limit < spec.max_bytes:
        problems.append(
            f"topic {spec.name} takes batches of {limit} bytes, PB_CHANGELOG_BATCH_BYTES is "
            f"{spec.max_bytes}: lower the "
            f"setting, or run `kafka-configs.sh --alter --topic {spec.name} --add-config "
            f"max.message.bytes={spec.max_bytes}`"
        )
    return problems


async def _configs(
    admin: AIOKafkaAdminClient, names: Iterable[str]
) -> dict[str, Mapping[str, str] | str]:
    """Return each topic's configuration, or the name of the error that kept it back."""
    wanted = ("cleanup.policy", "max.message.bytes")
    resources = [
        ConfigResource(ConfigResourceType.TOPIC, name, dict.fromkeys(wanted)) for name in names
    ]
    found: dict[str, Mapping[str, str] | str] = {}
    for response in await admin.describe_configs(resources) if resources else []:
        for code, _message, _kind, name, entries in response.resources:
            found[name] = (
                for_code(code).__name__ if code else {entry[0]: entry[1] for entry in entries}
            )
    return found


@asynccontextmanager
async def _admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**settings.kafka_auth(), client_id="paretobandit-topics")
    try:
        await admin.start()
        yield admin
    except KafkaConnectionError as error:
        raise TopicsNotReady(
            await refusal(settings)
            or f"no Kafka broker answers at {settings.bootstrap}: start one with `pbstream broker` "
            "or set PB_BOOTSTRAP to one that runs"
        ) from error
    except KafkaError as error:
        raise TopicsNotReady(
            f"Kafka at {settings.bootstrap} does not answer as it should: {error!r}"
        ) from error
    finally:
        await admin.close()
