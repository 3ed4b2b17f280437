"""Compose a worker: the Faust app, the agents, and what they share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from faust.types import TP

from agents.context_store import Contexts
from agents.declaring.declare_routers import declare_routers
from agents.feedback.book_feedback import LearnFromRewards, PaceSpend
from agents.lending.lend_money import DeclarePools, LendMoney, lend
from agents.outbox import Outbox
from agents.partition.partitions import Partitions
from agents.ports import Encoder, Limits, Meter, Ports, References
from agents.publishing.behind import Behind
from agents.publishing.publish import publish
from agents.routing.route_requests import RouteRequests
from agents.upkeep.sweep import Sweep
from agents.upkeep.waits_end import end_waits, resume
from ground import extras
from ground.boundary import fatal, leave, now
from streams.log.partitioner import partition_of
from streams.log.reach import Reach
from streams.priors.references import prior_reader, projection_checker
from streams.service.app import App, build_app
from streams.service.books_metrics import BooksMetrics
from streams.service.memory import usual_memory
from streams.service.pool_metrics import PoolMetrics
from streams.service.prompts import PromptEncoder
from streams.settings import BadSettings, Settings

if TYPE_CHECKING:
    from streams.service.spans import Spans

log = logging.getLogger(__name__)

AGENTS = {
    agent.name: agent
    for agent in (RouteRequests, PaceSpend, LearnFromRewards, DeclarePools, LendMoney)
}
"""Agents of the source topics, in the order in which those of a group are applied: bills and
rewards find the decisions of their group."""
STAGES = {
    "routers": "declare_routers",
    "requests": "route_requests",
    "costs": "pace_spend",
    "rewards": "learn_from_rewards",
    "pools": "declare_pools",
    "leases": "lend_money",
}
"""Stage in a dead letter, by source topic."""
FEEDBACK = frozenset({"costs", "rewards"})
"""Source topics that wait on the log while too many of their events wait for requests."""
TOPICS = (*STAGES, "routes", "lambda", "alerts", "dlq")
"""Topics that agents address, by their short names; dead letters reach `pb.refusals` themselves."""
PUBLISH_EVERY = 0.2
"""Seconds between two rounds of `pb.lambda`."""
HOLD_BACK_EVERY = 0.1
"""Seconds between two checks whether bills and labels outrun the requests."""
LEND_EVERY = 0.5
"""Seconds between two rounds of pools' grants and members' reports."""
END_WAITS_EVERY = 0.5
"""Seconds between two checks of parked events, by which a wait may be too long."""
LOOK_BEHIND_EVERY = 0.5
"""Seconds between two looks at how long bills and labels have waited."""
SWEEP_EVERY = 5.0
"""Seconds between two sweeps, each bounded in bytes and in time."""
LOOK_AT_REDIS_EVERY = 2.0
"""Seconds after which `/readyz` knows that Redis is away."""


def build_worker(settings: Settings, *, spans: Spans | None = None) -> App:
    """Build a worker that serves every router of the partitions it is given; opens nothing.

    Args:
        spans: what is traced, instead of what the settings say.
    """
    app = build_app(settings)
    app.spans = spans_of(settings) if spans is None else spans
    partitions = build_partitions(app)
    app.metrics.registry.register(PoolMetrics(partitions))
    app.metrics.registry.register(BooksMetrics(partitions))
    _register(app, partitions)
    return app


def build_partitions(app: App) -> Partitions:
    """Return the partitions of a worker, with what is done with their events."""
    return Partitions(build_ports(app), AGENTS, declare_routers)


def spans_of(settings: Settings) -> Spans | None:
    """Return where spans go, or None.

    Raises:
        BadSettings: they are wanted, and the extra `tracing` is not installed.
    """
    if settings.traces == "off":
        return None
    try:
        from streams.service.spans import otlp_spans
    except ImportError:
        raise BadSettings(
            f"PB_TRACES=otlp needs the extra `tracing`: {extras.command('tracing')}"
        ) from None
    return otlp_spans(settings.app_id, settings.instance_id)


def build_ports(app: App) -> Ports:
    """Return the agents' connections to the outside. Raises BadSettings for a missing folder."""
    settings, priors = app.settings, app.settings.priors_path
    if priors is not None and not priors.is_dir():
        raise BadSettings(f"PB_PRIORS_PATH: {priors} is not a folder; `pbstream fit` makes one")
    encode = None if settings.encoder_backend == "none" else PromptEncoder(settings)
    app.encoder = encode
    topic = {name: settings.topic(name) for name in TOPICS}
    letters = {name: app.dead_letters(name, stage=stage) for name, stage in STAGES.items()}
    finished = app.metrics.group if app.spans is None else app.finished
    return Ports(
        states=app.states,
        log=SourceTopics(app),
        outbox=Outbox(topic, app.produce, letters),
        encoder=None if encode is None else _encoder(app, encode),
        references=References(prior_reader(priors), projection_checker(settings)),
        contexts=_redis_contexts(app),
        meter=Meter(app.metrics.count, finished),
        rank_of=settings.source_rank,
        clock=now,
        leave=leave,
        limits=limits_of(settings),
    )


def _encoder(app: App, encode: PromptEncoder) -> Encoder:
    projections = {one.dimensions: one.checksum for one in encode.projections}
    return Encoder(app.metrics.measured(encode), projections)


def limits_of(settings: Settings) -> Limits:
    """Return the limits of one worker."""
    given = {name: getattr(settings, name) for name in Limits.__slots__}
    return Limits(**given | {"memory_bytes": settings.memory_bytes or usual_memory()})


def _redis_contexts(app: App) -> Contexts | None:
    settings = app.settings
    if settings.redis_url is None:
        return None
    # The client library takes memory that a worker without Redis does not need.
    from streams.state.read_back import ChangelogContexts
    from streams.state.redis_contexts import RedisContexts, address_of, connect, namespace_of

    url = settings.redis_url.get_secret_value()
    what = f"Redis at {address_of(url)} (PB_REDIS_URL)"
    app.redis = Reach(what)
    contexts = RedisContexts(
        connect(url),
        namespace=lambda: namespace_of(settings, app.cluster_id),
        ttl=settings.context_ttl,
        retry_for=settings.retry_for,
        read_back=ChangelogContexts(settings),
        partition_of=partial(partition_of, partitions=settings.partitions),
        reach=app.redis,
        full=Reach(what, fault="refuses contexts, the changelog has them"),
        count=app.metrics.retries.labels(what="redis").inc,
    )
    app.timer(LOOK_AT_REDIS_EVERY)(_fatal(app, contexts.look))
    return contexts


class SourceTopics:
    """The source topics of a worker."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._requests = app.settings.topic("requests")
        self.inbox = app.sources.inbox

    def partition_of(self, router_id: str) -> int:
        """Return the partition of a router."""
        return partition_of(router_id, self._app.settings.partitions)

    async def read_again(
        self, partition: int, offsets: Iterable[int]
    ) -> Mapping[int, bytes | None]:
        """Return the values of requests by offset; those that are gone from the log are left
        out.
        """
        return await self._app.probe.values_at(TP(self._requests, partition), offsets)

    def end_of(self, name: str, partition: int) -> int | None:
        """Return the offset after the last event of a topic, as of the last fetch."""
        end: int | None = self._app.consumer.end_of(TP(self._app.settings.topic(name), partition))
        return end

    def hold(self, partitions: frozenset[int]) -> None:
        """Stop fetching bills and rewards of some partitions, and resume all others."""
        app = self._app
        # A recovery resumes all partitions when it has ended.
        if not app.rebalancing and app.tables.actives_ready:
            app.sources.hold(FEEDBACK, partitions)


def _register(app: App, partitions: Partitions) -> None:
    app.states.on_lost(partitions.lost)
    app.guard.contained = lambda tp: partitions.contained(tp.topic, tp.partition)
    app.states.on_recovered(partitions.recovered)

    async def hold_back() -> None:
        partitions.hold_back()

    sweep = Sweep(partitions)
    for seconds, duty in (
        (PUBLISH_EVERY, lambda: publish(partitions)),
        (HOLD_BACK_EVERY, hold_back),
        (LEND_EVERY, lambda: lend(partitions)),
        (END_WAITS_EVERY, lambda: resume(partitions)),
        (END_WAITS_EVERY, lambda: end_waits(partitions)),
        (LOOK_BEHIND_EVERY, Behind(partitions).look),
        (SWEEP_EVERY, sweep.round),
    ):
        app.timer(seconds)(_fatal(app, duty))


def _fatal(app: App, duty: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    async def bounded() -> None:
        # No new group begins while partitions are handed over.
        if app.should_stop:
            return
        with fatal():
            async with app.duty():
                await duty()

    return bounded
