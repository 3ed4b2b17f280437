"""Log an outage of the service: one line when it begins, one a minute, and one when it ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

log = logging.getLogger(__name__)
EVERY_SECONDS = 60.0
"""Seconds between two lines of one outage."""


class Outage:
    """The outage log of one connection.

    Args:
        of: the name of the service in the log lines.
    """

    def __init__(self, of: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._of = of
        self._clock = clock
        self._began: float | None = None
        self._said = 0.0
        self.suspicion: object = None

    @property
    def suspected(self) -> bool:
        """Tell whether something failed and nothing has succeeded since."""
        return self.suspicion is not None or self._began is not None

    def suspect(self, why: object) -> None:
        """Remember a possible fault until it is checked."""
        self.suspicion = why

    def note(self, why: object) -> None:
        """Log the fault, at most once a minute."""
        now = self._clock()
        if self._began is None:
            self._began = now
        elif now - self._said < EVERY_SECONDS:
            return
        self._said = now
        log.warning("%s: %s", self._of, why)

    def over(self) -> None:
        """Log the end of the outage, if there was one."""
        if self._began is not None:
            log.warning("%s: back after %.0f s", self._of, self._clock() - self._began)
            self._began = None
        self.suspicion = None


CURRENT: ContextVar[Outage | None] = ContextVar("outage", default=None)
"""Outage of the connection that the running task belongs to; tasks of its Kafka clients inherit
it."""


class _IntoOutage(logging.Filter):
    """Turn warnings of a connection's own Kafka clients into suspicions, as the clients mend most
    of them by themselves. Warnings of other clients pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        outage = CURRENT.get()
        if outage is None or record.levelno < logging.WARNING:
            return True
        outage.suspect(record.getMessage())
        return False


_FILTER = _IntoOutage()


def quieten(library: str) -> None:
    """Put the filter on every logger of a library; a second time changes nothing."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == library:
            logging.getLogger(name).addFilter(_FILTER)
