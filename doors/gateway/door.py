"""Shared state of the gateway's paths: the connection to Kafka, keys, limits and recent
decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import orjson
from starlette.requests import Request

from doors.gateway.api_keys import ANYONE, Key, Keys
from doors.gateway.bodies import read_body, read_events
from doors.gateway.books import Books
from doors.gateway.lookup import Lookup
from doors.gateway.metrics import GatewayMetrics
from doors.gateway.origin import from_this_machine
from doors.gateway.payload_letters import Letters
from doors.gateway.problems import Problem
from doors.gateway.rate_limits import Allowance, Bounds, Recent
from paretobandit_client import Refused, Route, Undelivered, Unreachable
from paretobandit_client.answered import Answered
from paretobandit_client.fallbacks import Fallbacks
from paretobandit_client.kafka import KafkaLink
from paretobandit_client.sent_events import Ask, Cost, Reward, Verdict
from streams.settings import Settings

RECENT_BYTES = 64 * 2**20
"""Bytes of recent decisions that are kept, to be answered again without a search of the topics."""
CLOSING = 10.0
"""Seconds that accepted events have to reach Kafka when the gateway stops."""


class Door:
    """A running gateway.

    Args:
        keys: who may call; None asks for no key.
    """

    def __init__(self, settings: Settings, keys: Keys | None) -> None:
        auth = settings.kafka_auth()
        self.metrics = GatewayMetrics()
        self.books = Books(settings)
        self.recent = Recent(RECENT_BYTES)
        self.lookup = Lookup(settings, self.recent)
        self.letters = Letters(settings)
        self.link = KafkaLink(
            auth.pop("bootstrap_servers"),
            prefix=settings.prefix,
            delivery_timeout=CLOSING,
            on_route=self._keep,
            kafka=auth,
        )
        self.patience = settings.gateway_timeout
        self._answered = Answered()
        self._fallbacks = Fallbacks()
        self._bounds = Bounds(
            settings.gateway_body_bytes, settings.gateway_batch, settings.gateway_timeout
        )
        self._keys = keys
        self._allowance = Allowance(
            settings.gateway_rate, burst=max(settings.gateway_rate, settings.gateway_batch)
        )

    @property
    def trouble(self) -> str | None:
        """The reason why the gateway is not ready, or None."""
        if self.link.connected and self.books.reader.complete:
            return None
        return self.books.reader.trouble or "no connection to Kafka"

    async def start(self) -> None:
        """Begin to connect to Kafka. Connecting goes on in the background until it succeeds."""
        self.books.reader.start()
        try:
            # Nothing waits here: a gateway that starts before Kafka reports that on /readyz instead
            # of ending.
            await self.link.start(seconds=0.01)
        except Unreachable:
            return

    async def stop(self) -> None:
        """Deliver what is on its way, and disconnect."""
        await self.link.stop(seconds=CLOSING)
        await self.letters.stop()
        await self.books.reader.stop()

    def may(self, request: Request, router_id: str) -> bool:
        """Tell whether the caller, which was admitted, may use another router as well."""
        key = None if self._keys is None else self._keys.check(_authorization(request))
        return key is None or key.allows(router_id)

    def admit(self, request: Request, router_id: str, *, count: int = 1) -> str:
        """Return the caller, and take `count` from its allowance. Raises Problem if the caller may
        not use this router.
        """
        if self._keys is None:
            from_this_machine(request, keys="PB_GATEWAY_KEYS_FILE")
            key: Key | None = ANYONE
        else:
            key = self._keys.check(_authorization(request))
        if key is None:
            raise Problem("unauthorized", headers={"WWW-Authenticate": "Bearer"})
        if not key.allows(router_id):
            raise Problem("forbidden")
        if (seconds := self._allowance.take(key.name, count)) > 0.0:
            raise Problem("rate_limited", headers={"Retry-After": str(int(seconds) + 1)})
        return key.name

    async def events(self, request: Request, router_id: str) -> tuple[list[bytes], bool]:
        """Admit the caller, and return the events of its request and whether they are a batch.
        Raises Problem.
        """
        self.admit(request, router_id)  # before the body is read
        found, is_batch = await read_events(request, self._bounds)
        # One event was already charged before the body was read.
        self.admit(request, router_id, count=len(found) - 1)
        return found, is_batch

    async def body(self, request: Request, router_id: str) -> bytes:
        """Admit the caller, and return the body of its request, which may be packed. Raises
        Problem."""
        self.admit(request, router_id)
        return await read_body(request, self._bounds, gzipped=True)

    async def decide(self, event: Ask, *, seconds: float, fallback: str | None) -> bytes:
        """Return the decision as it is on `pb.routes`, or the caller's fallback. Raises Problem."""
        try:
            route = await self.link.ask(event, seconds=seconds)
        except Refused as error:
            raise Problem.of(error, request_id=event.request_id) from error
        except (TimeoutError, Undelivered) as error:
            if fallback is None:
                ref = (event.router_id, event.request_id)
                # The caller has to know which of the two happened: whether to send the same id
                # again now, or to ask for it later.
                delivered = not self.link.deliveries.under_way(ref)
                why = "no_decision" if delivered else "undelivered"
                raise Problem(why, request_id=event.request_id) from None
            self._answered.note(event.router_id, event.request_id, fallback)
            is_outage = self.link.is_outage(event)
            self._fallbacks.note(event, fallback, seconds=seconds, why=error, is_outage=is_outage)
            told = {
                "router_id": event.router_id,
                "request_id": event.request_id,
                "model": fallback,
                "fallback": True,
            }
            return orjson.dumps(told)
        self._answered.note(event.router_id, event.request_id, None)
        value = self.recent.get((event.router_id, event.request_id)) or msgspec.json.encode(route)
        # The first answer, with every candidate, is kept; a repeated one says that it is a repeat.
        return orjson.dumps({**orjson.loads(value), "repeat": True}) if route.repeat else value

    async def deliver(self, reports: Sequence[Cost | Reward | Verdict]) -> None:
        """Send bills or rewards, and return when Kafka has all of them. Raises Problem."""
        named = [self._named(report) for report in reports]
        try:
            # Shielded: a caller that hangs up must not cancel events that may be on their way.
            await asyncio.gather(*(asyncio.shield(self.link.deliver(report)) for report in named))
        except Undelivered as error:
            raise Problem("undelivered") from error

    def _named(self, report: Cost | Reward | Verdict) -> Cost | Reward | Verdict:
        """Return a report with the model that answered, if that was not the decided one. The
        gateway knows it from its own fallback or from an earlier report.
        """
        if isinstance(report, Verdict) or (report.attempt is not None and report.model is None):
            return report  # the plan names the model
        ref = report.router_id, report.request_id
        if report.model is None:
            return msgspec.structs.replace(report, model=self._answered.by(*ref))
        self._answered.note(*ref, report.model)
        return report

    def _keep(self, route: Route, value: bytes) -> None:
        self.recent.put((route.router_id, route.request_id), value, repeat=route.repeat)


def _authorization(request: Request) -> str:
    return request.headers.get("authorization", "")
