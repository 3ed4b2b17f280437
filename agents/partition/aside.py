"""Set aside a router or a pool on which timed work fails: all others go on, and the failed one is
tried again after its next change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agents.interfaces import Table
from agents.lane.poison import blamed
from agents.partition.news import News
from agents.ports import Ports
from agents.table import keys
from ground.boundary import Attempt
from router_state.changes import Alert


class Aside:
    """Routers and pools of one partition that are set aside.

    Attributes:
        failed: by work and kind, the records of routers and pools at the time when the work failed
            on them. Every change of a router or a pool changes its record.
    """

    def __init__(self, table: Table, *, ports: Ports, news: News) -> None:
        self._table, self._ports, self._news = table, ports, news
        self.failed: dict[tuple[str, bytes], dict[str, bytes | None]] = {}

    def skips(self, work: str, kind: bytes, name: str) -> bool:
        """Tell whether this work has failed on a router or a pool that has not changed since."""
        failed = self.failed.get((work, kind))
        return (
            failed is not None
            and name in failed
            and failed[name] == self._table.get(keys.key(kind, name))
        )

    @contextmanager
    def trying(self, work: str, kind: bytes, name: str) -> Iterator[None]:
        """Do some work for one router or pool, and set it aside if the work fails. Errors that end
        the process pass.

        Args:
            kind: `keys.HEAD` for a router, `keys.POOL` for a pool.
        """
        with Attempt() as attempt:
            yield
        if (error := attempt.error) is None:
            self.done(work, kind, name)
        elif blamed(error, f"{work} of {keys.OF[kind]} {name}") is None:
            raise error
        else:
            self.note(work, kind, name, why=type(error).__name__)

    def note(self, work: str, kind: bytes, name: str, *, why: str) -> None:
        """Set a router or a pool aside, with one alert until the work succeeds again."""
        known = self.failed.setdefault((work, kind), {})
        if name not in known:
            self._tell(work, kind, name, why)
        known[name] = self._table.get(keys.key(kind, name))

    def done(self, work: str, kind: bytes, name: str) -> None:
        """Note that the work has succeeded."""
        if (known := self.failed.get((work, kind))) is not None:
            known.pop(name, None)

    def _tell(self, work: str, kind: bytes, name: str, why: str) -> None:
        now = self._ports.clock()
        self._ports.meter.count("set_aside")
        evidence = {"work": work, "of": keys.OF[kind], "why": why, "partition": self._table.number}
        alert = Alert("set_aside", "down", 1.0, since=now, observed_at=now, evidence=evidence)
        self._news.alerts.append((name, alert))
