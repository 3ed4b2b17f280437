"""Replace the thousands of log lines of the Kafka client during an outage by one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from streams.log.reach import Reach

CLIENT = ("aiokafka", "faust", "mode")
"""Roots of the loggers of the libraries that talk to Kafka."""


class Chatter(logging.Filter):
    """A log filter that drops the client's complaints and reports the first one of an outage.

    Args:
        reach: returns the state of the connection to Kafka.
    """

    def __init__(
        self, reach: Callable[[], Reach], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._reach = reach
        self._clock = clock
        self._heard = clock() - 3600.0

    def listen(self) -> None:
        """Filter everything that a handler of the process writes, after the handler's own
        filters.
        """
        for handler in logging.getLogger().handlers:
            handler.addFilter(self)

    def received_within(self, seconds: float) -> bool:
        """Tell whether the client has complained within the last seconds."""
        return self._clock() - self._heard < seconds

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep everything but complaints of the client; what ends the process is no complaint."""
        if (
            record.levelno not in (logging.WARNING, logging.ERROR)
            or record.name.partition(".")[0] not in CLIENT
        ):
            return True
        if record.name.startswith("aiokafka"):
            self._heard = self._clock()
        elif self._reach().trouble is None:
            return True
        self._reach().failed(record.getMessage())
        return False
