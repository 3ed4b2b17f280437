"""Check the invariants of what a group has changed, before it is durable."""

from __future__ import annotations

from collections.abc import Iterable

from agents.lane.poison import on_behalf_of
from agents.table.own_routers import Shard
from router_state.state import invariants

VALIDATED = 200
"""Most requests of a router whose invariants are checked after each batch: some milliseconds."""


def validate(shard: Shard, router_ids: Iterable[str]) -> None:
    """Check the invariants of routers; those of requests only where few are remembered.

    Raises:
        InternalError: one does not hold; the log names it.
    """
    for router_id in router_ids:
        engine = shard.engine(router_id)
        assert engine is not None
        with on_behalf_of(f"the state of router {router_id}"):
            if len(engine.records) <= VALIDATED:
                invariants.check(engine.state, engine.records)
            else:
                for fault in invariants.faults(engine.state):
                    raise AssertionError(fault)
