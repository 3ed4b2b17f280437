"""Compose a worker: the Faust app, the agents, and what they share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agents.declaring.declare_routers import declare_routers
from agents.feedback.learn_from_rewards import LearnFromRewards
from agents.feedback.pace_spend import PaceSpend
from agents.lending.lend_money import DeclarePools, LendMoney, lend
from agents.partition.partitions import Service
from agents.publishing import publish as housekeeping
from agents.publishing.behind import Behind
from agents.routing.route_requests import RouteRequests
from agents.upkeep.sweep import Sweep
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
    for agent in (RouteRequests, PaceSpend, LearnFromRewards, DeclarePools, LendMoney)
}
"""Agents of the source topics, in the order in which those of a group are applied: bills and
rewards find the decisions of their group."""
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


def _register(app: App, service: Service) -> None:
    app.states.on_lost(service.lost)
    app.guard.contained = lambda tp: service.contained(tp.topic, tp.partition)
    app.states.on_recovered(service.recovered)
    app.settle = partial(_forget_delivered, service)
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
        app.duties.every(seconds, duty)


async def _forget_delivered(service: Service) -> None:
    """Forget the refusals whose dead letters were delivered: the next owner would repeat them."""
    for lane in service.lanes.values():
        # One that a rebalance has closed takes no more groups.
        if lane.delivered and lane.shard.table.open:
            async with lane.batch():
                pass
