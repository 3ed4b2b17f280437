"""Connect to the service over Kafka: one producer, one consumer, and reconnection."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from aiokafka.partitioner import murmur2
from msgspec import MsgspecError

from paretobandit_client.client_errors import Undelivered, Unreachable
from paretobandit_client.deliveries import Before, Deliveries, spawn
from paretobandit_client.kafka_clients import ANSWERS, new_producer, partitions_of, stop_client
from paretobandit_client.outage import CURRENT, Outage, quieten
from paretobandit_client.sent_events import (
    TOPIC_OF,
    Ask,
    Event,
    Refusal,
    Route,
    called,
    decode_refusal,
    decode_route,
    encode,
)
from paretobandit_client.waiting import Waiting

log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE, ONE_TRY, ONE_LOOK = 0.05, 2.0, 30.0, 5.0
"""Seconds: first and longest pause between tries, limit of one try (a slow one that is repeated
counts once), limit for metadata."""
LOOK_AFTER = 5.0
"""Seconds without an answer after which the brokers are checked, as the clients' warnings may be
switched off."""
NEVER = (MessageSizeTooLargeError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError)
"""Errors that another try would not cure."""


class KafkaLink:
    """Carry events to the service and decisions back, for some routers or for all.

    Args:
        router_ids: routers whose answers are read; None: all routers.
        delivery_timeout: seconds until an event that Kafka does not take is given up.
        on_refused: called with refusals that no caller waits for, of bills and rewards for example.
        on_route: called with the value of every decision that is read.
        kafka: further arguments of aiokafka's clients, such as `security_protocol`.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        prefix: str = "pb.",
        router_ids: Iterable[str] | None = None,
        delivery_timeout: float = 120.0,
        on_refused: Callable[[Refusal], None] = lambda refusal: None,
        on_route: Callable[[Route, bytes], None] | None = None,
        kafka: Mapping[str, object] | None = None,
    ) -> None:
        self.waiting = Waiting()
        self._options: dict[str, object] = {**(kafka or {}), "bootstrap_servers": bootstrap}
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._keys = (
            None if router_ids is None else {router_id.encode() for router_id in router_ids}
        )
        self._delivery_timeout = delivery_timeout
        self._on_refused = on_refused
        self._on_route = on_route
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._connected = asyncio.Event()
        self._background: asyncio.Task[None] | None = None
        self.deliveries = Deliveries()
        self._next: dict[TopicPartition, int] = {}
        self._renewing = asyncio.Lock()
        self._trouble: BaseException | None = None
        self._outage = Outage(f"Kafka at {bootstrap}")

    @property
    def connected(self) -> bool:
        """Say whether events can be sent and answers are read."""
        return self._connected.is_set()

    async def start(self, *, seconds: float) -> None:
        """Begin to connect, and wait for it; connecting goes on in the background even if this
        raises.

        Raises:
            Unreachable: connecting did not succeed within `seconds`; the text says why.
        """
        self._background = spawn(self._run())
        try:
            await asyncio.wait_for(self._connected.wait(), seconds)
        except TimeoutError:
            advice = ": start a broker, or name another one (bootstrap=…, or PB_BOOTSTRAP)"
            raise Unreachable(
                f"Kafka at {self._bootstrap} cannot be used yet: {self._trouble or 'no answer'}"
                f"{advice if isinstance(self._trouble, KafkaConnectionError | None) else ''}"
            ) from None

    async def stop(self, *, seconds: float) -> int:
        """Deliver what is on its way, at most for `seconds`, and close; return how many events
        could not be delivered.
        """
        left = await self.deliveries.finish(seconds)
        if self._background is not None:
            self._background.cancel()
            await asyncio.gather(self._background, return_exceptions=True)
        await self._close()
        return left

    async def ask(self, event: Ask, *, seconds: float | None) -> Route:
        """Send a request and return its decision. Raises TimeoutError, Refused."""
        self.deliver(event)
        return await self.waiting.wait((event.router_id, event.request_id), seconds=seconds)

    def deliver(self, event: Event) -> asyncio.Task[None]:
        """Send one event, and return the task of its delivery, which ends when Kafka has the event.
        The task may raise Undelivered. Await it through a shield.

        A bill or a reward of a request that is still being sent is sent after it.

        Raises:
            Undelivered: too many events wait already.
        """
        return self.deliveries.begin(event, lambda before: self._deliver(event, before))

    def is_outage(self, event: Ask) -> bool:
        """Tell whether Kafka has not taken a request yet; the log of the outage says why."""
        return self.deliveries.under_way((event.router_id, event.request_id))

    async def _deliver(self, event: Event, before: Before) -> None:
        CURRENT.set(self._outage)
        # From the hand-over on, so that the wait for its request counts.
        deadline = time.monotonic() + self._delivery_timeout
        if before is not None:
            await asyncio.shield(before)
        value, pause = encode(event), FIRST_PAUSE
        while True:
            try:
                await self._try(event, value, seconds=min(deadline - time.monotonic(), ONE_TRY))
                return
            except (KafkaError, TimeoutError) as error:
                if isinstance(error, NEVER) or time.monotonic() + pause > deadline:
                    why = repr(error if isinstance(error, NEVER) else self._trouble or error)
                    raise Undelivered(
                        f"Kafka at {self._bootstrap} did not take the {called(event)}: {why}"
                    ) from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _try(self, event: Event, value: bytes, *, seconds: float) -> None:
        topic, ref = TOPIC_OF[type(event)], (event.router_id, event.request_id)
        async with asyncio.timeout(seconds):
            await self._connected.wait()
            producer = self._producer
            if producer is None:
                raise KafkaConnectionError("the connection is being mended")
            try:
                placed = await producer.send_and_wait(
                    self._prefix + topic, value, key=event.router_id.encode()
                )
            except KafkaError as error:
                if not error.retriable and not isinstance(error, NEVER):
                    # An idempotent producer with a broken sequence refuses all further events.
                    await self._renew(producer)
                raise
        if topic == "requests":
            self.waiting.placed(ref, (placed.partition, placed.offset))

    async def _renew(self, broken: AIOKafkaProducer) -> None:
        """Replace a producer that no longer works."""
        async with self._renewing:
            if self._producer is broken:
                self._producer = await new_producer(self._options)
                await stop_client(broken)

    async def _run(self) -> None:
        """Connect and read answers until closed; after failures reconnect, with growing pauses."""
        quieten("aiokafka")
        CURRENT.set(self._outage)
        pause = FIRST_PAUSE
        while True:
            try:
                await self._connect()
                self._connected.set()
                self._outage.over()
                pause = FIRST_PAUSE
                await self._read()
            except (KafkaError, OSError, Unreachable) as error:
                self._trouble = error
                self._outage.note(error)
            self._connected.clear()
            await self._close()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _connect(self) -> None:
        counts = await partitions_of(self._options, self._prefix)
        self._producer = await new_producer(self._options)
        self._consumer = AIOKafkaConsumer(
            **self._options, enable_auto_commit=False, auto_offset_reset="latest"
        )
        await self._consumer.start()
        places = [
            TopicPartition(self._prefix + name, number)
            for name in ANSWERS
            for number in self._numbers(counts[name])
        ]
        self._consumer.assign(places)
        # Answers to new events come after the present ends; after an interruption reading goes on
        # where it was.
        for place, end in (await self._consumer.end_offsets(places)).items():
            self._consumer.seek(place, self._next.setdefault(place, end))

    def _numbers(self, count: int) -> Iterable[int]:
        return (
            range(count)
            if self._keys is None
            else {(murmur2(key) & 0x7FFFFFFF) % count for key in self._keys}
        )

    async def _read(self) -> None:
        assert self._consumer is not None
        heard = time.monotonic()
        while True:
            found = await self._consumer.getmany(timeout_ms=1000)
            for place, records in found.items():
                for record in records:
                    if self._keys is None or record.key in self._keys:
                        self._take(place.topic, record)
                self._next[place] = records[-1].offset + 1
            if self._outage.suspected or (not found and time.monotonic() > heard + LOOK_AFTER):
                await self._look()
                heard = time.monotonic()
            elif found:
                heard = time.monotonic()

    async def _look(self) -> None:
        """Check whether any broker answers; the clients reconnect by themselves."""
        assert self._consumer is not None
        try:
            await asyncio.wait_for(self._consumer.topics(), ONE_LOOK)
        except (KafkaError, TimeoutError) as error:
            self._outage.note(self._outage.suspicion or repr(error))
        else:
            self._outage.over()

    def _take(self, topic: str, record: Any) -> None:
        try:
            if topic == self._prefix + "routes":
                route = decode_route(record.value)
                self.waiting.decided(route)
                if self._on_route is not None:
                    self._on_route(route, record.value)
            elif not self.waiting.refused(refusal := decode_refusal(record.value)):
                self._on_refused(refusal)
        except (MsgspecError, TypeError) as error:
            log.warning("unreadable record on %s at offset %s: %s", topic, record.offset, error)

    async def _close(self) -> None:
        clients, self._producer, self._consumer = (self._producer, self._consumer), None, None
        await asyncio.gather(*(stop_client(client) for client in clients if client is not None))
