"""Choose the Kafka to use: one that is named, one in Docker, or a local one from Maven's jars."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from commands.broker.container import docker_kafka
from commands.broker.jars import KafkaUnavailable, Say, say_on_stderr
from commands.broker.local import LocalKafka
from commands.broker.wire import answers

__all__ = ["Broker", "KafkaUnavailable", "Kind", "LocalKafka", "choose_broker"]

Kind = Literal["env", "docker", "local"]
NAMES = ("KAFKA_BOOTSTRAP", "PB_BOOTSTRAP")
"""Variables that name a broker; the first that is set counts."""
THREE_WAYS = (
    "No Kafka broker. Any one of these gives one:\n"
    "  1. set KAFKA_BOOTSTRAP (or PB_BOOTSTRAP) to a broker that runs, for example 127.0.0.1:9092\n"
    "  2. start Docker\n"
    "  3. install Java 17 and Maven: apt-get install openjdk-17-jre-headless maven\n"
    "Tried:\n"
)
"""Beginning of the error that no broker was found; a list of what was tried follows."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A Kafka that answers, and where it came from."""

    bootstrap: str
    kind: Kind


@contextmanager
def choose_broker(*, say: Say = say_on_stderr) -> Iterator[Broker]:
    """Yield a broker: KAFKA_BOOTSTRAP, else a container, else a local one. A broker that was
    started here is stopped.

    PB_BROKER=env, docker or local allows one of them only.

    Raises:
        KafkaUnavailable: a named broker does not answer, or none can be started; the text lists all
            ways.
    """
    only = os.environ.get("PB_BROKER", "")
    if only not in ("", *get_args(Kind)):
        raise KafkaUnavailable(
            f"PB_BROKER is {only!r}; it may be {', '.join(get_args(Kind))}, or unset"
        )
    # A named broker is taken before anything is started.
    named = next(((name, os.environ[name]) for name in NAMES if os.environ.get(name)), None)
    if named is not None and only in ("", "env"):
        yield Broker(_answering(*named), "env")
        return
    tried = [f"{' and '.join(NAMES)}: {'not set' if named is None else 'ruled out by PB_BROKER'}"]
    with ExitStack() as stack:
        yield _start(only, tried, stack, say)


def _answering(name: str, bootstrap: str) -> str:
    """Return `bootstrap` if a broker answers there: another broker would hide the fault."""
    if not answers(bootstrap):
        raise KafkaUnavailable(
            f"{name} is {bootstrap}, but no Kafka broker answers there; start it, or unset {name}"
        )
    return bootstrap


def _start(only: str, tried: list[str], stack: ExitStack, say: Say) -> Broker:
    ways: dict[Kind, Callable[[Say], AbstractContextManager[str]]] = {
        "docker": lambda say: docker_kafka(say=say),
        "local": _local,
    }
    for kind, way in ways.items():
        if only not in ("", kind):
            tried.append(f"{kind}: ruled out by PB_BROKER")
            continue
        try:
            return Broker(stack.enter_context(way(say)), kind)
        except KafkaUnavailable as reason:
            tried.append(f"{kind}: {reason}")
    raise KafkaUnavailable(THREE_WAYS + "\n".join(f"  - {line}" for line in tried))


@contextmanager
def _local(say: Say) -> Iterator[str]:
    with LocalKafka(say=say) as kafka:
        yield kafka.bootstrap
