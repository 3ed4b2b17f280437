"""The app of a worker: the durable table, what it publishes, readiness, metrics and its stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from agents.group import Group
from agents.outbox import DeadLetters
from agents.table import keys
from ground.boundary import Produce
from schemas.topic_roles import SOURCES
from streams.faust.faust_app import FaustApp
from streams.faust.gap_guard import GapGuard
from streams.faust.outgoing import Outgoing
from streams.faust.record_batches import RecordBatches
from streams.faust.sources import Inbox, Sources
from streams.faust.state_table import StateTable
from streams.faust.versions import require_known_versions
from streams.log.probe import LogProbe
from streams.partitioner import partition_of
from streams.service.cloud_event_headers import as_cloud_events
from streams.service.condition import Condition
from streams.service.duties import Duties
from streams.service.family_metrics import FamilyMetrics
from streams.service.prompts import PromptEncoder
from streams.service.router_metrics import RouterMetrics
from streams.service.stalls import watch_loop
from streams.service.watched_records import watched
from streams.service.web import Web
from streams.service.worker_metrics import Metrics
from streams.settings import Settings
from streams.state.tables import States

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

    from streams.service.spans import Spans

log = logging.getLogger(__name__)

HAND_OVER_WITHIN = 5.0
"""Longest time that a stop waits for its timers and for the group, seconds; after it the session's
end hands over."""


class App(FaustApp):
    """A Faust app with the durable table, readiness, metrics and an end without delay.

    Attributes:
        states: the durable table.
        probe: reader of single offsets of the log.
        metrics: the metrics of /metrics.
        troubles: functions for /readyz, each of which returns what is wrong with a service other
            than Kafka, or None.
        spans: the tracing, or None.
        announce: function that is called with the address of /readyz, once it is served.
        duties: the worker's timers.
        settle: function that writes what the next owner must know, after everything has been
            answered.
        cluster_id: the name of the Kafka cluster, from which the keys in Redis are made.
    """

    states: States
    guard: GapGuard
    cluster_id = ""
    announce: Callable[[str], None]
    settle: Callable[[], Awaitable[None]]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.metrics = Metrics()
        self.metrics.topic_partitions.set(settings.partitions)
        self.observe_heartbeat = self.metrics.heartbeat_gaps.observe
        self.announce = lambda address: log.info("%s says when this worker is ready", address)
        self.troubles: list[Callable[[], str | None]] = []
        self._condition = Condition(self, self.metrics, self.troubles)
        self.spans: Spans | None = None
        self.duties = Duties(self)
        self.settle = _nothing
        self.encoder: PromptEncoder | None = None
        # Called before every record that leaves.
        may_write = self.session.held
        self._batches = RecordBatches(
            self._client, settings.changelog, settings.changelog_batch_bytes, may_write=may_write
        )
        self.produce: Produce = Outgoing(
            self._client, may_write=may_write, codec=settings.output_compression
        ).send
        if settings.cloud_events_source is not None:
            self.produce = as_cloud_events(
                self.produce, prefix=settings.prefix, source=settings.cloud_events_source
            )
        self.states = States(
            self._batches.publish, log_only=b"" if settings.redis_url is None else keys.CONTEXT
        )
        self.tables.add(
            StateTable(self, self.states, name="router_states", count=settings.partitions)
        )
        if settings.metrics_routers:
            self._watch_routers(settings.metrics_routers)
        self.probe = LogProbe(settings)
        self.guard = GapGuard(
            generation=lambda: self.consumer_generation_id,
            start_at=lambda tp: self.consumer.start_at(tp),  # noqa: PLW0108  made later
            holds_records=self.probe.holds_records,
            end_of=self.probe.end_of,
        )
        topics = {name: settings.topic(name) for name in SOURCES}
        self.sources = Sources(
            topics,
            lambda number: Inbox(
                number,
                topics,
                max_bytes=settings.source_buffer_bytes,
                stop=lambda tp: self.consumer.on_buffer_full(tp),  # noqa: PLW0108  made later
                resume=lambda tp: self.consumer.on_buffer_drop(tp),  # noqa: PLW0108
            ),
        )
        self._web = Web(
            bind=settings.web_bind,
            port=settings.web_port,
            registry=self.metrics.registry,
            not_ready=self._condition.not_ready,
            before_scrape=self._condition.measure,
        )

    def _client(self) -> AIOKafkaProducer:
        client: AIOKafkaProducer = self.producer.client
        return client

    # What agents use

    def finished(self, group: Group) -> None:
        """Measure a group of source events that is finished."""
        self.metrics.group(group)
        if self.spans is not None:
            self.spans.group(group)

    def dead_letters(self, source: str, *, stage: str) -> DeadLetters:
        """Return the dead letter writer of an agent that reads the topic `source`."""

        def count(reason: str) -> None:
            self.metrics.dead_letters.labels(topic=source, reason=reason).inc()

        return DeadLetters(
            self.settings.prefix, stage=stage, send_large=self._batches.send_large, count=count
        )

    def _watch_routers(self, limit: int) -> None:
        settings = self.settings
        places = partial(partition_of, partitions=settings.partitions)
        routers = RouterMetrics(limit, partition_of=places)
        families = FamilyMetrics(partition_of=places)
        readers = {**routers.readers, "families": families.take_family}
        self.produce = watched(
            self.produce, {settings.topic(name): read for name, read in readers.items()}
        )
        for one in (routers, families):
            self.states.on_lost(one.lost)
            self.metrics.registry.register(one)

    # What Faust calls

    async def on_start(self) -> None:
        """Start the web server and the watch, both of which must not wait for the recovery."""
        self._condition.listen()
        for topic in self.sources:
            self.topics.add(self.topic(topic))
        await super().on_start()
        await self._web.start()
        self.announce(f"http://{self._web.address}/readyz")
        self.add_future(self._condition.watch())
        self.add_future(watch_loop(self.metrics.stalls.observe))
        if self.encoder is not None:
            self.add_future(self.encoder.start())

    async def on_stop(self) -> None:
        """Finish what is under way, leave the group of workers, then stop the servers."""
        began = time.monotonic()
        log.info("stopping partitions=%s", sorted(self.states.owned))
        await super().on_stop()
        await self._hand_over()
        log.info("stopped seconds=%.2f", time.monotonic() - began)
        await self.probe.stop()
        # The web server stops last, so that /readyz shows the stop for as long as it takes.
        await self._web.stop()
        if self.spans is not None:
            await asyncio.to_thread(self.spans.stop)

    async def _hand_over(self) -> None:
        """Leave the group; the next owner may write at once, so nothing here may write any more."""
        try:
            async with asyncio.timeout(HAND_OVER_WITHIN):
                await self.duties.done()
                if self.session.is_member:
                    await self.settle()
                await self.consumer.leave_group()
        except TimeoutError:
            log.warning(
                "the group did not answer within %g s: the end of the session hands the "
                "partitions over",
                HAND_OVER_WITHIN,
            )

    def on_rebalance_start(self) -> None:
        """Note when a recovery began."""
        self._rebalance_started = time.monotonic()
        super().on_rebalance_start()

    def on_rebalance_end(self) -> None:
        """Note that a recovery ended."""
        super().on_rebalance_end()
        took = time.monotonic() - self._rebalance_started
        self.metrics.recoveries.inc()
        self.metrics.recovery_seconds.set(took)
        log.info("recovered partitions=%s seconds=%.2f", sorted(self.states.owned), took)
        log.info("ready")


async def _nothing() -> None:
    """Do nothing: there are no agents."""


def build_app(settings: Settings) -> App:
    """Build the app of a worker; opens nothing."""
    require_known_versions()
    return App(settings)
