"""Compose a worker: the Faust app, the agents, and what they share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agents.declaring.declare_routers import declare_routers
from agents.members.exchange_grants import DeclarePools, ExchangeGrants, report_and_grant
from agents.members.exchange_priors import ExchangePriors, report_and_estimate
from agents.partition.partition import Partitions
from agents.publishing.publish import Behind, publish
from agents.requests.book_feedback import LearnFromRewards, PaceSpend
from agents.requests.route_requests import RouteRequests
from agents.upkeep.sweep import Sweep
from agents.upkeep.waits_end import end_waits, resume
from ground import extras
from streams.service.agent_ports import build_ports
from streams.service.books_metrics import BooksMetrics
from streams.service.pool_metrics import PoolMetrics
from streams.service.worker_app import App, build_app
from streams.settings import Settings
from streams.settings_problems import BadSettings

if TYPE_CHECKING:
    from streams.service.spans import Spans

AGENTS = {
    agent.name: agent
    for agent in (
        RouteRequests,
        PaceSpend,
        LearnFromRewards,
        DeclarePools,
        ExchangeGrants,
        ExchangePriors,
    )
}
"""Agents of the source topics, in the order in which a group applies their batches: so bills and
rewards find the decisions of their group.
"""
PUBLISH_EVERY = 0.2
"""Seconds between two rounds of `pb.lambda`."""
HOLD_BACK_EVERY = 0.2
"""Seconds between two checks whether bills and labels outrun the requests."""
GRANT_EVERY = 0.5
"""Seconds between two rounds of pools' grants and members' reports."""
ESTIMATE_EVERY = 0.5
"""Seconds between two rounds of families' estimates and members' reports."""
END_WAITS_EVERY = 0.5
"""Seconds between two checks of parked events, by which a wait may be too long."""
LOOK_BEHIND_EVERY = 0.5
"""Seconds between two looks at how long bills and labels have waited."""
SWEEP_EVERY = 5.0
"""Seconds between two sweeps, each bounded in bytes and in time."""


def build_worker(settings: Settings, *, spans: Spans | None = None) -> App:
    """Build a worker that serves every router of the partitions it is given; opens nothing.

    Args:
        spans: the tracing, in place of the settings'.
    """
    app = build_app(settings)
    app.spans = spans_of(settings) if spans is None else spans
    partitions = build_partitions(app)
    app.metrics.registry.register(PoolMetrics(partitions))
    app.metrics.registry.register(BooksMetrics(partitions))
    _register(app, partitions)
    return app


def build_partitions(app: App) -> Partitions:
    """Return the partitions of a worker, with its agents."""
    return Partitions(build_ports(app), AGENTS, declare_routers)


def spans_of(settings: Settings) -> Spans | None:
    """Return spans that are exported; None: the settings ask for none.

    Raises:
        BadSettings: spans are wanted, and the extra `tracing` is not installed.
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


def _register(app: App, partitions: Partitions) -> None:
    app.states.on_lost(partitions.lost)
    app.guard.contained = lambda tp: partitions.contained(tp.topic, tp.partition)
    app.states.on_recovered(partitions.recovered)
    app.settle = partitions.forget_delivered
    sweep = Sweep(partitions)
    for seconds, duty in (
        (PUBLISH_EVERY, partial(publish, partitions)),
        (HOLD_BACK_EVERY, partitions.hold_back),
        (GRANT_EVERY, partial(partitions.each, report_and_grant)),
        (ESTIMATE_EVERY, partial(partitions.each, report_and_estimate)),
        (END_WAITS_EVERY, partial(partitions.each, resume)),
        (END_WAITS_EVERY, partial(partitions.each, end_waits)),
        (LOOK_BEHIND_EVERY, Behind(partitions).look),
        (SWEEP_EVERY, sweep.round),
    ):
        app.duties.every(seconds, duty)
