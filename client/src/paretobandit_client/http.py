"""Connect to the service over HTTP, through `pbstream gateway`, with the same guarantees as over
Kafka.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from paretobandit_client.client_errors import Refused, RouterError, Undelivered, Unreachable
from paretobandit_client.deliveries import Before, Deliveries
from paretobandit_client.sent_events import (
    TOPIC_OF,
    Ask,
    Event,
    Route,
    called,
    decode_route,
    encode,
)

FIRST_PAUSE, LONGEST_PAUSE, ONE_TRY, LEAST, DELIVERY = 0.05, 2.0, 30.0, 0.05, 1.0
"""Seconds: first and longest pause between tries, limit of one try, least time that a gateway gets
for a decision, and its time to pass on a request that nobody waits for."""
CONNECTIONS = 1_000
"""Most connections to one gateway; a request holds one until it is answered."""
AGAIN = frozenset({"no_decision", "rate_limited", "request_timeout", "undelivered"})
"""A gateway's temporary reasons: the same event may succeed later."""
OWN = frozenset(
    {
        "body_too_large",
        "forbidden",
        "method_not_allowed",
        "not_found",
        "too_many_events",
        "unauthorized",
        "unsupported_media_type",
    }
)
"""A gateway's reasons about the caller; all others are the service's."""


class _Later(Exception):
    """The same request may succeed later; `delivered`: Kafka has the event nevertheless."""

    def __init__(self, why: str, *, delivered: bool = False, pause: float = 0.0) -> None:
        super().__init__(why)
        self.delivered = delivered
        self.pause = pause


class HttpLink:
    """Carry events to a gateway, and decisions back.

    Args:
        url: the gateway's address, such as `https://router.example`.
        key: the API key, if the gateway asks for one.
        router_id: the router with which the key and the address are tried at the start.
        delivery_timeout: seconds until an event that the gateway does not take is given up.
    """

    def __init__(
        self, url: str, *, key: str | None, router_id: str, delivery_timeout: float = 120.0
    ) -> None:
        self.url = url.rstrip("/")
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.router_id = router_id
        self._delivery_timeout = delivery_timeout
        self._deliveries = Deliveries()
        self._opened: aiohttp.ClientSession | None = None

    async def start(self, *, seconds: float) -> None:
        """Wait until the gateway answers. Raises Unreachable: the gateway does not answer, or
        refuses this caller."""
        self._opened = aiohttp.ClientSession(
            headers={**self._headers, "Content-Type": "application/json"},
            connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        )
        deadline = time.monotonic() + seconds
        while True:
            try:
                return await self._look(max(LEAST, deadline - time.monotonic()))
            except _Later as why:
                if time.monotonic() + FIRST_PAUSE > deadline:
                    raise Unreachable(
                        f"the gateway at {self.url}: {why}; `pbstream gateway` starts one, and "
                        "url=… names another"
                    ) from None
            except RouterError as error:
                raise Unreachable(f"{error}") from None
            await asyncio.sleep(FIRST_PAUSE)

    async def stop(self, *, seconds: float) -> int:
        """Deliver what is on its way, at most for `seconds`, and close; return how many events
        could not be delivered.
        """
        left = await self._deliveries.finish(seconds)
        if self._opened is not None:
            await self._opened.close()
        return left

    async def ask(self, event: Ask, *, seconds: float | None) -> Route:
        """Send a request and return its decision. Raises TimeoutError, Refused, Undelivered."""
        until = None if seconds is None else time.monotonic() + seconds
        asked = self._deliveries.begin(event, lambda _: self._ask(event, until))
        return await asyncio.wait_for(asyncio.shield(asked), seconds)

    def deliver(self, event: Event) -> asyncio.Task[None]:
        """Hand a bill or a reward over; the task ends when Kafka has it, and raises Undelivered or
        Refused. Await it through a shield.
        """
        return self._deliveries.begin(event, lambda before: self._report(event, before))

    def is_outage(self, event: Ask) -> bool:
        """Return False: outages of Kafka are logged by the gateway, not in this process."""
        return False

    async def _ask(self, event: Ask, until: float | None) -> Route:
        """Ask until there is a decision; once nobody waits for it, until Kafka has the request."""
        deadline, pause = time.monotonic() + self._delivery_timeout, FIRST_PAUSE
        while True:
            patience = ONE_TRY if until is None else max(LEAST, until - time.monotonic())
            if until is not None and until < time.monotonic():
                patience = DELIVERY
            try:
                return decode_route(
                    await self._post(
                        "decisions", event, seconds=patience, query={"timeout": f"{patience:.3f}"}
                    )
                )
            except _Later as why:
                now = time.monotonic()
                if why.delivered and until is not None and now + LEAST > until:
                    raise TimeoutError from why
                if now + pause > max(deadline, until or 0.0):
                    raise self._given_up(event, why) from None
                # If Kafka has the request, the gateway has already waited.
                await asyncio.sleep(0.0 if why.delivered else max(pause, why.pause))
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _report(self, event: Event, before: Before) -> None:
        # From the hand-over on, so that the wait for its request counts.
        deadline, pause = time.monotonic() + self._delivery_timeout, FIRST_PAUSE
        if before is not None:
            # Its result does not matter: a report is sent whatever became of the request.
            await asyncio.wait({before}, timeout=self._delivery_timeout)
        while True:
            patience = min(ONE_TRY, max(DELIVERY, deadline - time.monotonic()))
            try:
                await self._post(TOPIC_OF[type(event)], event, seconds=patience)
                return
            except _Later as why:
                if time.monotonic() + pause > deadline:
                    raise self._given_up(event, why) from None
                await asyncio.sleep(max(pause, why.pause))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _given_up(self, event: Event, why: _Later) -> Undelivered:
        return Undelivered(
            f"the gateway at {self.url} did not take the {called(event)} within "
            f"{self._delivery_timeout:g} s: {why}"
        )

    async def _look(self, seconds: float) -> None:
        """Tell whether the gateway is ready, and takes this caller."""
        await self._exchange("GET", "/readyz", seconds=seconds)
        try:
            await self._exchange("GET", f"/v1/routers/{self.router_id}", seconds=seconds)
        except Refused:
            return  # a router that nobody has declared yet

    async def _post(
        self, what: str, event: Event, *, seconds: float, query: Mapping[str, str] | None = None
    ) -> bytes:
        path = f"/v1/routers/{event.router_id}/{what}"
        # A stream, as aiohttp warns of a large body in one piece.
        options = {"data": io.BytesIO(encode(event)), "params": query or {}}
        # A second more than the gateway waits, so that its answer arrives in time.
        return await self._exchange("POST", path, seconds=seconds + 1.0, **options)

    async def _exchange(self, method: str, path: str, *, seconds: float, **options: Any) -> bytes:
        """Return the body of an answer. Raises _Later, Refused, Undelivered."""
        if self._opened is None:
            raise Undelivered("the link is not open")
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._opened.request(
                method, self.url + path, timeout=limit, **options
            ) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Later(str(error) or type(error).__name__) from error
        if answer.status >= 300:
            raise _meaning(answer.status, body, answer.headers, self)
        return body


def _meaning(
    status: int, body: bytes, headers: Mapping[str, str], link: HttpLink
) -> _Later | RouterError:
    """Return the error for a failed response of a gateway, or of a proxy before it."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.MsgspecError:
        problem = {}
    reason, detail = str(problem.get("reason", "")), str(problem.get("detail", ""))
    said = f"{status} {reason} {detail}".strip()
    if reason in AGAIN:
        wait = headers.get("Retry-After", "0")
        pause = float(wait) if wait.isdigit() else 0.0
        return _Later(said, delivered=reason == "no_decision", pause=pause)
    if reason in OWN or (not reason and 300 <= status < 500 and status not in {408, 425, 429}):
        return Undelivered(f"the gateway at {link.url}: {said}")
    if not reason or (reason == "internal_error" and "request_id" not in problem):
        return _Later(said)
    request_id = str(problem.get("request_id", ""))
    return Refused(reason, detail, router_id=link.router_id, request_id=request_id)
