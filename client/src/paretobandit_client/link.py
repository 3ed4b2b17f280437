"""Define the connection to the service, and open the one that a router's arguments name."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from paretobandit_client import checks
from paretobandit_client.sent_events import Ask, Event, Refusal, Route

log = logging.getLogger(__name__)


class Link(Protocol):
    """A connection to the service."""

    async def start(self, *, seconds: float) -> None: ...

    async def stop(self, *, seconds: float) -> int: ...

    async def ask(self, event: Ask, *, seconds: float | None) -> Route: ...

    def deliver(self, event: Event) -> asyncio.Task[None]: ...

    def is_outage(self, event: Ask) -> bool: ...


def link_of(
    router_id: str,
    *,
    bootstrap: str | None,
    url: str | None,
    key: str | None,
    prefix: str | None,
    delivery_timeout: float,
    on_refused: Callable[[Refusal], None] | None,
    kafka: Mapping[str, object] | None,
) -> Link:
    """Return the connection over HTTP or over Kafka, see `Router`. Raises ValueError for arguments
    of both connections."""
    if url is not None:
        _only_one_way(bootstrap=bootstrap, prefix=prefix, kafka=kafka, on_refused=on_refused)
        return _http_link(url, key=key, router_id=router_id, delivery_timeout=delivery_timeout)
    if key is not None:
        raise ValueError("a key is for a gateway: give its url, too")
    from paretobandit_client.kafka import KafkaLink  # who goes over HTTP needs none of it

    return KafkaLink(
        bootstrap or os.environ.get("PB_BOOTSTRAP") or "127.0.0.1:9092",
        prefix=os.environ.get("PB_PREFIX", "pb.") if prefix is None else prefix,
        router_ids=[router_id],
        delivery_timeout=delivery_timeout,
        on_refused=on_refused or _log_refusal,
        kafka=kafka,
    )


def _only_one_way(**of_kafka: object) -> None:
    if given := [name for name, value in of_kafka.items() if value is not None]:
        raise ValueError(f"url goes over HTTP, {', '.join(given)} over Kafka: give one of them")


def _http_link(url: str, **options: Any) -> Link:
    try:
        from paretobandit_client.http import HttpLink
    except ImportError as error:
        raise RuntimeError("url needs aiohttp: pip install './client[http]'") from error
    return HttpLink(checks.url(url), **options)


def _log_refusal(refusal: Refusal) -> None:
    log.warning(
        "%s of %s refused: %s: %s",
        refusal.topic,
        refusal.request_id,
        refusal.reason,
        refusal.message,
    )
