"""Log why calls went to their fallback: one line at once, and then one a minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from paretobandit_client.outage import EVERY_SECONDS
from paretobandit_client.sent_events import Ask

log = logging.getLogger(__name__)
LONG_BYTES = 100_000
"""UTF-8 bytes of a prompt that may take an encoder longer than a caller waits."""


class Fallbacks:
    """The log of one router's fallbacks."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: float | None = None
        self._unlogged = 0

    def note(
        self,
        event: Ask,
        fallback: str,
        *,
        seconds: float,
        why: Exception,
        is_outage: bool = False,
    ) -> None:
        """Log that a request was answered with the fallback, unless a line was just written.

        Args:
            is_outage: Kafka has not taken the request, so that the log of the outage says why.
        """
        now = self._clock()
        if is_outage and _size(event) < LONG_BYTES:
            return
        if self._said is not None and now - self._said < EVERY_SECONDS:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last such line)" if self._unlogged else ""
        log.warning(
            "router %s: request %s goes to the fallback %s: %s%s",
            event.router_id,
            event.request_id,
            fallback,
            _reason(event, seconds, why, is_outage=is_outage),
            more,
        )
        self._said, self._unlogged = now, 0


def _size(event: Ask) -> int:
    """Return the bytes that an encoder has to read."""
    return 0 if event.prompt is None or event.context is not None else len(event.prompt.encode())


def _reason(event: Ask, seconds: float, why: Exception, *, is_outage: bool) -> str:
    if not isinstance(why, TimeoutError):
        return str(why)
    silence = f"no decision came within {seconds:g} s"
    size = _size(event)
    if size < LONG_BYTES:
        return f"{silence}: if this goes on, is the router declared (pbstream routers list)?"
    if is_outage:
        return f"{silence}, as Kafka has not taken its prompt of {size:,} bytes yet"
    return (
        f"{silence}; its prompt has {size:,} bytes, which may take the encoder longer: raise "
        "timeout, or send a shorter one"
    )
