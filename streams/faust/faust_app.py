"""A Faust app that consumes, recovers, crashes and leaves its group as a worker needs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import faust
from faust.types import TP
from faust.types.fixups import FixupT

from ground.boundary import exit_at_once
from ground.messages import Record
from streams.faust.faust_options import faust_options
from streams.faust.group_session import GroupSession
from streams.faust.membership import InstanceIdTaken
from streams.faust.sources import Sources
from streams.faust.state_table import Partitions
from streams.faust.transport import Transport
from streams.settings import Settings

log = logging.getLogger(__name__)

Task = Callable[[], Awaitable[None]]


class Guard(Protocol):
    """Checks fetched records before a lane has them."""

    async def check(self, tp: TP, records: Sequence[Record]) -> None:
        """Raise an error if a record is missing."""


class FaustApp(faust.App):  # type: ignore[misc]
    """A Faust app with the transport, the recovery and the session of this folder.

    Attributes:
        session: this worker's membership; nothing is written or published without it.
        states: the partitions of the durable table.
        sources: records that were fetched and are not finished.
        guard: the check against undelivered events.
        observe_heartbeat: function that is called with the seconds between two heartbeats that the
            group confirmed.
    """

    settings: Settings
    states: Partitions
    sources: Sources
    guard: Guard
    observe_heartbeat: Callable[[float], object]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.app_id, **faust_options(settings))
        self.settings = settings
        self.session = GroupSession(settings.session_timeout)
        self._after_recovery: list[Task] = []
        self.transport = Transport(self.conf.broker_consumer, self)
        self.producer_transport = Transport(self.conf.broker_producer, self)

    @property
    def recovering(self) -> bool:
        """Tell whether the partitions of this worker are not known or not recovered."""
        return bool(self.rebalancing or not self.tables.actives_ready)

    def task(self, fun: Task, **options: bool) -> Task:
        """Start `fun` with the app. Faust would also announce `fun` to scanners of decorators, and
        look up the file of every module for them; its options for leaders and traces mean nothing
        here.
        """
        self._after_recovery.append(fun)
        return fun

    async def on_first_start(self) -> None:
        """Create no directories: this worker keeps nothing on disk."""

    async def on_started_init_extra_tasks(self) -> None:
        """Start the tasks, as the first recovery is over."""
        for task in self._after_recovery:
            self.add_future(task())

    def end(self, reason: BaseException) -> None:
        """End the process at once: an orderly stop would commit unfinished events."""
        if isinstance(reason, InstanceIdTaken):
            # The settings caused the error: a trace would say nothing more.
            log.error("%s", *reason.args)
            exit_at_once()
        log.critical("crash: %r, leaving", reason, exc_info=reason)
        exit_at_once()

    def _crash(self, reason: BaseException) -> None:
        self.end(reason)

    def _init_fixups(self) -> list[FixupT]:
        """Return none, as Faust would search the metadata of all packages for them."""
        return []
