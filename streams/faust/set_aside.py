"""Let a source partition wait while a batch of it can't be read, and all others go on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping

from faust.types import TP

from ground.boundary import exit_at_once
from streams.faust.unreadable import UnreadableBatch
from streams.settings import Settings

log = logging.getLogger(__name__)

LOOK_AGAIN_AFTER = 10.0
"""Seconds until a batch that could not be read is fetched again: its replica may have been
restored."""


class SetAside:
    """The source partitions that wait.

    Attributes:
        found: the unreadable batch of each of these partitions.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.found: dict[TP, UnreadableBatch] = {}
        self._rest_until: dict[TP, float] = {}

    def without(self, tps: Iterable[TP]) -> frozenset[TP]:
        """Return the partitions that may be fetched now."""
        if not self._rest_until:
            return frozenset(tps)
        now = time.monotonic()
        return frozenset(tp for tp in tps if now >= self._rest_until.get(tp, now))

    def add(self, found: UnreadableBatch) -> None:
        """Set a partition aside; one of the changelog ends the process."""
        tp, settings = found.tp, self._settings
        if tp.topic == settings.changelog:
            log.critical(
                "%s: the state of this partition can't be recovered; restore the replica at its "
                "broker",
                found,
            )
            exit_at_once()
        if tp not in self.found:
            log.error(
                "%s: this partition waits, all others go on. Restore the replica at its broker; or "
                "give these events up: stop all workers, and run `kafka-consumer-groups.sh "
                "--bootstrap-server %s --group %s --topic %s:%d --reset-offsets --to-offset %d "
                "--execute`",
                *(found, settings.bootstrap, settings.app_id, *tp, found.end),
            )
        self.found[tp] = found
        self._rest_until[tp] = time.monotonic() + LOOK_AGAIN_AFTER

    def look(self, positions: Mapping[TP, int]) -> None:
        """Let the partitions go on that have read past their damaged record batch, and forget those
        that no longer belong to this worker.

        Args:
            positions: the present offset of each partition of this worker that has one.
        """
        for tp, found in list(self.found.items()):
            if tp not in positions or positions[tp] >= found.end:
                log.warning("topic %s, partition %d goes on", *tp)
                del self.found[tp], self._rest_until[tp]
