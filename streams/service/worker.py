"""Compose a worker: the Faust app, the agents, and what they share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from faust.types import TP

from agents.context_store import Contexts
from agents.declaring.declare_routers import declare_routers
from agents.feedback.learn_from_rewards import LearnFromRewards
from agents.feedback.pace_spend import PaceSpend
from agents.lending.lend_money import DeclarePools, LendMoney, lend
from agents.partition.partitions import Service
from agents.ports import Limits, Ports
from agents.publishing import publish as housekeeping
from agents.publishing.behind import Behind
from agents.routing.route_requests import RouteRequests
from agents.upkeep.sweep import Sweep
from ground import extras
from ground.boundary import fatal, leave, now
from streams.log.reach import Reach
from streams.partitioner import partition_of
from streams.priors.references import prior_reader, projection_checker
from streams.service.books_metrics import BooksMetrics
from streams.service.memory_limit import usual_memory
from streams.service.pool_metrics import PoolMetrics
from streams.service.prompts import PromptEncoder
from streams.service.worker_app import App, build_app
from streams.settings import Settings
from streams.settings_problems import BadSettings

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
"""Seconds between two rounds of pools' loans and members' reports."""
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
    service = build_service(app)
    app.metrics.registry.register(PoolMetrics(service))
    app.metrics.registry.register(BooksMetrics(service))
    _register(app, service)
    return app


def build_service(app: App) -> Service:
    """Return the service of a worker: its agents and their shared state."""
    return Service(build_ports(app), AGENTS, declare_routers)


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
    if encode is not None:
        app.troubles.append(lambda: encode.trouble)
    return Ports(
        topic={name: settings.topic(name) for name in TOPICS},
        states=app.states,
        inbox=app.sources.inbox,
        finished=app.metrics.group if app.spans is None else app.finished,
        produce=app.produce,
        dead_letters={name: app.dead_letters(name, stage=stage) for name, stage in STAGES.items()},
        log=SourceTopics(app),
        encode=encode and app.metrics.measured(encode),
        projections={}
        if encode is None
        else {one.dimensions: one.checksum for one in encode.projections},
        check_projection=projection_checker(settings),
        read_prior=prior_reader(priors),
        contexts=_redis_contexts(app),
        clock=now,
        rank_of=settings.source_rank,
        partition_of=partial(partition_of, partitions=settings.partitions),
        count=app.metrics.count,
        leave=leave,
        limits=limits_of(settings),
    )


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
    redis = Reach(what)
    app.troubles.append(lambda: redis.trouble)
    contexts = RedisContexts(
        connect(url),
        namespace=lambda: namespace_of(settings, app.cluster_id),
        ttl=settings.context_ttl,
        retry_for=settings.retry_for,
        read_back=ChangelogContexts(settings),
        partition_of=partial(partition_of, partitions=settings.partitions),
        reach=redis,
        full=Reach(what, fault="refuses contexts, the changelog has them"),
        count=app.metrics.retries.labels(what="redis").inc,
    )
    app.timer(LOOK_AT_REDIS_EVERY)(_fatal(app, contexts.look))
    return contexts


class SourceTopics:
    """The source topics, beyond the events that were handed to the agents."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._requests = app.settings.topic("requests")

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
        if not app.recovering:
            app.sources.hold(FEEDBACK, partitions)


def _register(app: App, service: Service) -> None:
    app.states.on_lost(service.lost)
    app.guard.contained = lambda tp: service.contained(tp.topic, tp.partition)
    app.states.on_recovered(service.recovered)
    sweep = Sweep(service)
    for seconds, duty in (
        (PUBLISH_EVERY, lambda: housekeeping.publish(service)),
        (HOLD_BACK_EVERY, lambda: housekeeping.hold_back(service)),
        (LEND_EVERY, lambda: lend(service)),
        (END_WAITS_EVERY, lambda: housekeeping.resume(service)),
        (END_WAITS_EVERY, lambda: housekeeping.end_waits(service)),
        (LOOK_BEHIND_EVERY, Behind(service).look),
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
