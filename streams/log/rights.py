"""List what each kind of user may do in Kafka; rights are printed, granted and checked from this
list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, get_args

from schemas.topic_roles import SOURCES

if TYPE_CHECKING:
    from streams.settings import Settings

Role = Literal["worker", "client", "ingest", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Roles that need rights in Kafka."""
INGEST_GROUP = "paretobandit-ingest"
"""The consumer group of `pbstream ingest`, by default."""


class Operation(IntEnum):
    """Kafka's operations, by their codes on the wire."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DESCRIBE_CONFIGS = 10

    @property
    def title(self) -> str:
        """Return the operation's name as Kafka's tools spell it."""
        return self.name.title().replace("_", "")


@dataclass(frozen=True, slots=True)
class Right:
    """One operation on one resource."""

    resource: Literal["topic", "group"]
    name: str
    operation: Operation

    def __str__(self) -> str:
        return f"{self.operation.title} on {self.resource} {self.name}"


def rights(settings: Settings, role: Role) -> list[Right]:
    """Return exactly the rights that a role needs; the right to read or write a topic implies the
    right to describe it.
    """
    from streams.log.service_topics import topic_specs  # which brings Kafka's client along

    topics = [spec.name for spec in topic_specs(settings)]
    sources = [settings.topic(name) for name in SOURCES]
    events = [settings.topic(name) for name in ("requests", "costs", "rewards")]
    told = ("routes", "lambda", "families", "alerts", "refusals", "dlq")
    answers = [settings.topic(name) for name in told]
    state = settings.changelog
    match role:
        case "worker":
            # Stray events are forwarded to their own partition, so workers write to source topics
            # as well.
            return [
                *_each([*sources, state], Operation.READ),
                *_each([*sources, *answers, state], Operation.WRITE),
                *_each(topics, Operation.DESCRIBE_CONFIGS),
                Right("group", settings.app_id, Operation.READ),
            ]
        case "client" | "ingest":
            kept = [settings.topic("dlq")] if role == "ingest" else []
            return [
                *_each([*events, *kept], Operation.WRITE),
                *_each(
                    [settings.topic(name) for name in ("routes", "lambda", "refusals")],
                    Operation.READ,
                ),
            ]
        case "operator":
            return [
                *_each([*sources, *answers, state], Operation.READ),
                *_each([*_declarations(settings), *events], Operation.WRITE),
                *_each(topics, Operation.DESCRIBE_CONFIGS),
            ]
        case "admin":
            return list(_each(topics, Operation.CREATE))


def _declarations(settings: Settings) -> list[str]:
    return [settings.topic(name) for name in ("routers", "pools", "kin")]


def reading(topic: str, *, group: str) -> list[Right]:
    """Return the rights that `pbstream ingest` needs beside its role, to read other programs'
    payloads.
    """
    return [Right("topic", topic, Operation.READ), Right("group", group, Operation.READ)]


def _each(names: Iterable[str], operation: Operation) -> Iterable[Right]:
    return (Right("topic", name, operation) for name in names)


def command(right: Right, *, principal: str, bootstrap: str) -> str:
    """Return the command of Kafka that grants a right."""
    return (
        f"kafka-acls.sh --bootstrap-server {bootstrap} --command-config admin.properties --add "
        f"--allow-principal {principal} --operation {right.operation.title} --{right.resource} "
        f"{right.name}"
    )
