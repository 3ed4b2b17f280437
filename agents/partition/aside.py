"""Set aside the router or the pool on which work by the clock fails: the others go on, and it is
tried again after its next change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from agents.lane.poison import blamed
from agents.partition.news import Bulletin
from agents.ports import Ports
from agents.table import keys
from agents.table.own_routers import Shard
from ground.boundary import Attempt
from router_state.changes import Alert

OF: Final = {keys.HEAD: "router", keys.POOL: "pool"}
"""Words for a router and a pool, by the kind of their records."""


@dataclass(slots=True)
class Aside:
    """Routers and pools that are set aside.

    Attributes:
        failed: by work, partition and kind, the records of those on which the work has failed, as
            they were then: whatever changes a router or a pool changes its record.
    """

    ports: Ports
    bulletin: Bulletin
    failed: dict[tuple[str, int, bytes], dict[str, bytes | None]] = field(default_factory=dict)

    def skips(self, work: str, shard: Shard, kind: bytes, name: str) -> bool:
        """Tell whether a work has failed on a router or a pool that has not changed since."""
        failed = self.failed.get((work, shard.number, kind))
        return (
            failed is not None
            and name in failed
            and failed[name] == shard.table.get(keys.key(kind, name))
        )

    @contextmanager
    def trying(self, work: str, shard: Shard, kind: bytes, name: str) -> Iterator[None]:
        """Do a work for one router or pool, which is set aside where that fails. Errors that end
        the process pass.

        Args:
            kind: `keys.HEAD` for a router, `keys.POOL` for a pool.
        """
        with Attempt() as attempt:
            yield
        if (error := attempt.error) is None:
            self.done(work, shard, kind, name)
        elif blamed(error, f"{work} of {OF[kind]} {name}") is None:
            raise error
        else:
            self.note(work, shard, kind, name, why=type(error).__name__)

    def note(self, work: str, shard: Shard, kind: bytes, name: str, *, why: str) -> None:
        """Set a router or a pool aside, with an alert, once until the work succeeds again."""
        known = self.failed.setdefault((work, shard.number, kind), {})
        if name not in known:
            self._tell(work, shard, kind, name, why)
        known[name] = shard.table.get(keys.key(kind, name))

    def done(self, work: str, shard: Shard, kind: bytes, name: str) -> None:
        """Note that a work has succeeded."""
        if (known := self.failed.get((work, shard.number, kind))) is not None:
            known.pop(name, None)

    def _tell(self, work: str, shard: Shard, kind: bytes, name: str, why: str) -> None:
        now = self.ports.clock()
        self.ports.count("set_aside")
        evidence = {"work": work, "of": OF[kind], "why": why, "partition": shard.number}
        alert = Alert("set_aside", "down", 1.0, since=now, observed_at=now, evidence=evidence)
        self.bulletin.alerts.append((name, alert))

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget everything about partitions that this worker lost."""
        for at in [at for at in self.failed if at[1] in partitions]:
            del self.failed[at]
