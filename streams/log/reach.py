"""Track whether an external service answers, and log once when it fails and once when it is
back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)


class Reach:
    """One external service.

    Args:
        what: its name, address and setting, for people: `Redis at 127.0.0.1:6379 (PB_REDIS_URL)`.
        fault: words for a failure of the service.
    """

    def __init__(
        self,
        what: str,
        *,
        fault: str = "does not answer",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._fault = fault
        self._clock = clock
        self._since: float | None = None
        self._failures = 0

    @property
    def trouble(self) -> str | None:
        """Return what is wrong and for how long; None while all is well."""
        if self._since is None:
            return None
        return f"{self._what} {self._fault}, for {self._clock() - self._since:.0f} s"

    def failed(self, why: str) -> None:
        """Note a failure; only the first one is logged."""
        self._failures += 1
        if self._since is None:
            self._since = self._clock()
            log.warning(
                "%s %s: %s (what follows is counted until it is over)", self._what, self._fault, why
            )

    def answered(self) -> None:
        """Note an answer."""
        if self._since is not None:
            log.warning(
                "%s is back after %.0f s, %d failures were counted",
                self._what,
                self._clock() - self._since,
                self._failures,
            )
            self._since, self._failures = None, 0
