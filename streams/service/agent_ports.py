"""Connect the agents of a worker to the outside: topics, the table, priors, Redis, the encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from faust.types import TP

from agents.outbox import Outbox
from agents.ports import Contexts, Encoder, Limits, Ports, References
from ground.boundary import leave, now
from streams.log.reach import Reach
from streams.partitioner import partition_of
from streams.priors.references import prior_reader, projection_checker
from streams.service.memory_limit import usual_memory
from streams.service.prompts import PromptEncoder
from streams.service.worker_app import App
from streams.settings import Settings
from streams.settings_problems import BadSettings

STAGES = {
    "routers": "declare_routers",
    "requests": "route_requests",
    "costs": "pace_spend",
    "rewards": "learn_from_rewards",
    "pools": "declare_pools",
    "leases": "exchange_grants",
    "kin": "exchange_priors",
}
"""Stage in a dead letter, by source topic."""
FEEDBACK = frozenset({"costs", "rewards"})
"""Source topics that wait on the log while too many of their events wait for requests."""
TOPICS = (*STAGES, "routes", "lambda", "families", "alerts", "dlq")
"""Topics that agents address, by their short names; dead letters reach `pb.refusals` themselves."""
LOOK_AT_REDIS_EVERY = 2.0
"""Seconds after which `/readyz` knows that Redis is away."""


def build_ports(app: App) -> Ports:
    """Return the agents' connections to the outside. Raises BadSettings for a missing folder."""
    settings, priors = app.settings, app.settings.priors_path
    if priors is not None and not priors.is_dir():
        raise BadSettings(f"PB_PRIORS_PATH: {priors} is not a folder; `pbstream fit` makes one")
    encode = None if settings.encoder_backend == "none" else PromptEncoder(settings)
    app.encoder = encode
    if encode is not None:
        app.troubles.append(lambda: encode.trouble)
    topic = {name: settings.topic(name) for name in TOPICS}
    letters = {name: app.dead_letters(name, stage=stage) for name, stage in STAGES.items()}
    return Ports(
        states=app.states,
        log=SourceTopics(app),
        outbox=Outbox(topic, app.produce, letters),
        encoder=None if encode is None else _encoder(app, encode),
        references=References(prior_reader(priors), projection_checker(settings)),
        contexts=_redis_contexts(app),
        count=app.metrics.count,
        finished=app.finished,
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
    app.duties.every(LOOK_AT_REDIS_EVERY, contexts.look)
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
        if not app.recovering:
            app.sources.hold(FEEDBACK, partitions)
