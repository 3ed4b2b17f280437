"""Check everything that a service depends on, and say what to do."""

from __future__ import annotations

import asyncio
import platform
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib.metadata import version

from aiokafka import codec
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, KafkaError

from commands.doctor_routers import examine_routers
from commands.finding import SHOWN, Finding
from ground.boundary import Attempt
from ground.json_values import Document
from streams.log.login_refusal import refusal
from streams.log.rights_check import missing_rights
from streams.log.service_topics import TopicsNotReady, check_topics
from streams.settings import Settings, group_of

NEARLY_FULL = 0.9
"""Share of Redis' `maxmemory` above which it will soon refuse contexts; a choice."""
WITHIN = 3.0
"""Seconds that Redis and a worker have for one answer."""


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Yield the findings. Without a broker they end early, as all others need one."""
    yield Finding(
        "versions",
        "fine",
        f"pbstream {version('paretobandit-streams')}, Python {platform.python_version()}",
    )
    yield _codecs()
    yield _encoder(settings)
    yield await _redis(settings)
    try:
        problems = await check_topics(settings)
    except (TopicsNotReady, KafkaConnectionError, OSError):
        found = await refusal(settings) or f"nothing answers at {settings.bootstrap}"
        yield Finding("broker", "wrong", found, "pbstream broker, or set PB_BOOTSTRAP")
        return
    yield Finding("broker", "fine", f"answers at {settings.bootstrap}")
    # A problem of a topic is written as "what: the command that mends it".
    by_remedy: dict[str, list[str]] = {}
    for found, _, remedy in (problem.partition(": ") for problem in problems):
        by_remedy.setdefault(remedy, []).append(found)
    for remedy, many in by_remedy.items():
        yield Finding("topics", "wrong", "; ".join(many), remedy)
    if not problems:
        yield Finding(
            "topics",
            "fine",
            f"all there, {settings.partitions} partitions, prefix {settings.prefix}",
        )
    yield await _rights(settings)
    yield await _group(settings)
    yield await _worker(settings)
    if not problems:
        async for finding in examine_routers(settings):
            yield finding


def _codecs() -> Finding:
    names = ("gzip", "snappy", "lz4", "zstd")
    missing = [name for name in names if not getattr(codec, f"has_{name}")()]
    if missing:
        return Finding(
            "codecs", "wrong", f"cannot read {', '.join(missing)}", "pip install cramjam"
        )
    return Finding("codecs", "fine", f"reads {', '.join(names)}")


def _encoder(settings: Settings) -> Finding:
    from streams.encoder.encoder_by_settings import backend_of, dimensions_of

    if settings.encoder_backend == "none":
        return Finding(
            "encoder",
            "look",
            "none: contexts only, prompts are refused",
            "unset PB_ENCODER_BACKEND to take prompts",
        )
    with Attempt() as looking:
        backend, dimensions = backend_of(settings), dimensions_of(settings)
        return Finding("encoder", "fine", f"{backend}: prompts become {dimensions} numbers")
    return Finding(
        "encoder",
        "wrong",
        f"{type(looking.error).__name__}: {looking.error}",
        "look at PB_ENCODER_PATH and PB_PROJECTION_PATH",
    )


async def _redis(settings: Settings) -> Finding:
    if settings.redis_url is None:
        return Finding("Redis", "fine", "not used: contexts are in the changelog")
    from redis.exceptions import NoPermissionError

    from streams.log.rights_check import MissingRights
    from streams.state.redis_contexts import connect
    from streams.state.redis_rights import require_redis

    client = connect(settings.redis_url.get_secret_value())
    where = f"{client.connection_pool.connection_kwargs.get('host', 'its socket')}"
    room: Document = {}
    with Attempt() as asking:
        await require_redis(settings)
        # Do what a worker does with Redis, with an unused key.
        await asyncio.wait_for(client.mget([f"{settings.prefix}context:doctor"]), WITHIN)
        # A worker's Redis user may lack the right to ask this.
        with suppress(NoPermissionError):
            room = await asyncio.wait_for(client.info("memory"), WITHIN)
    await client.aclose()
    if asking.error is None:
        return _room(where, room)
    if isinstance(asking.error, MissingRights):
        return Finding("Redis", "wrong", str(asking.error), "grant it, or mend PB_REDIS_URL")
    return Finding(
        "Redis",
        "wrong",
        f"{where} does not answer ({type(asking.error).__name__})",
        "start it, or mend PB_REDIS_URL",
    )


def _room(where: str, memory: Document) -> Finding:
    """Return a finding on whether Redis keeps contexts until their rewards come.

    Args:
        memory: its `INFO memory`, empty where the user may not ask.
    """
    policy, most = memory.get("maxmemory_policy", "noeviction"), memory.get("maxmemory", 0)
    size = "maxmemory for all contexts of PB_CONTEXT_TTL"
    if policy != "noeviction":
        return Finding(
            "Redis",
            "look",
            f"{where} drops contexts when it is full (maxmemory-policy {policy}): those whose "
            "rewards come later are read back from the changelog, one by one",
            f"CONFIG SET maxmemory-policy noeviction, and {size}",
        )
    if most and memory["used_memory"] > NEARLY_FULL * most:
        full = memory["used_memory"] / most
        found = f"{where} is {full:.0%} full: what it refuses is read back from the changelog"
        return Finding("Redis", "look", found, f"CONFIG SET {size}, or a shorter PB_CONTEXT_TTL")
    unseen = "" if memory else ", INFO refused: whether it drops contexts is not known"
    return Finding("Redis", "fine", f"{where} answers{unseen}")


async def _rights(settings: Settings) -> Finding:
    if settings.sasl_username is None and settings.ssl_certfile is None:
        return Finding(
            "rights",
            "look",
            "no login: whoever reaches the broker may do everything",
            "docs/reference/rights.md",
        )
    missing = await missing_rights(settings, "operator")
    if missing:
        return Finding(
            "rights",
            "wrong",
            f"lacks {', '.join(map(str, missing[:SHOWN]))}",
            "pbstream topics acls --role operator --check",
        )
    return Finding(
        "rights", "fine", f"{settings.sasl_username or 'the certificate'} has those of an operator"
    )


async def _group(settings: Settings) -> Finding:
    usual = group_of(settings.prefix)
    admin = AIOKafkaAdminClient(**settings.kafka_auth(), client_id="pbstream-doctor")
    try:
        await admin.start()
        described = await admin.describe_consumer_groups([settings.app_id])
        # aiokafka returns the protocol's own response: the sixth field of a group is its members.
        members = len(described[0].groups[0][5])
    except (KafkaError, LookupError):
        members = 0
    finally:
        await admin.close()
    workers = "1 worker" if members == 1 else f"{members} workers"
    if settings.app_id != usual:
        found = f"{settings.app_id}, {workers}; the prefix alone would give {usual}"
        return Finding("group", "look", found, "the same PB_APP_ID for all workers and commands")
    if not members:
        return Finding("group", "wrong", f"{settings.app_id}: no worker", "pbstream worker")
    return Finding("group", "fine", f"{settings.app_id}, {workers}")


async def _worker(settings: Settings) -> Finding:
    address = f"http://127.0.0.1:{settings.web_port}/readyz"

    def ask() -> str:
        with urllib.request.urlopen(address, timeout=WITHIN) as answer:
            return str(answer.read(200).decode(errors="replace")).strip()

    try:
        return Finding("worker here", "fine", f"{address}: {await asyncio.to_thread(ask)}")
    except urllib.error.HTTPError as error:
        return Finding(
            "worker here",
            "wrong",
            f"{address}: {error.read(200).decode(errors='replace').strip()}",
            "its log says more",
        )
    except OSError:
        return Finding(
            "worker here",
            "look",
            f"none answers at {address}",
            "pbstream worker, if one is to run on this machine",
        )
