"""Log why calls went to their fallback: one line at once, and then one a minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from paretobandit_client.events import Ask
from paretobandit_client.outage import EVERY_SECONDS

log = logging.getLogger(__name__)
LONG_BYTES = 100_000
"""UTF-8 bytes of a prompt that may take an encoder longer than a caller waits."""


class Fallbacks:
    """The log of one router's fallbacks."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: float | None = None
        self._unsaid = 0

    def note(self, event: Ask, fallback: str, *, seconds: float, why: Exception) -> None:
        """Log that a request was answered with the fallback, unless a line was just written."""
        now = self._clock()
        if self._said is not None and now - self._said < EVERY_SECONDS:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        log.warning(
            "router %s: request %s goes to the fallback %s: %s%s",
            event.router_id,
            event.request_id,
            fallback,
            _reason(event, seconds, why),
            more,
        )
        self._said, self._unsaid = now, 0


def _reason(event: Ask, seconds: float, why: Exception) -> str:
    if not isinstance(why, TimeoutError):
        return str(why)
    silence = f"no decision came within {seconds:g} s"
    size = 0 if event.prompt is None or event.context is not None else len(event.prompt.encode())
    if size < LONG_BYTES:
        return silence
    return (
        f"{silence}; its prompt has {size:,} bytes, which may take the encoder longer: raise "
        "timeout, or send a shorter one"
    )
