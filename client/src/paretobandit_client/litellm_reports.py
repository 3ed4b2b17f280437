"""Deliver what LiteLLM's calls cost, and what verifiers say of their answers, beside the calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable

from paretobandit_client.async_router import Router
from paretobandit_client.attempt_sums import Attempts
from paretobandit_client.client_errors import RouterError
from paretobandit_client.litellm_bills import Told
from paretobandit_client.side_numbers import fitting

log = logging.getLogger(__name__)


class PluginReports:
    """Bills and verdicts of a plugin that are being delivered; `len` is their number.

    Args:
        router: connects to the service. name_of: returns the portfolio's name of a model.
    """

    def __init__(
        self, router: Callable[[], Awaitable[Router]], name_of: Callable[[str], str]
    ) -> None:
        self._router, self._name_of = router, name_of
        self._under_way: set[asyncio.Task[object]] = set()
        self._attempts = Attempts()

    def __len__(self) -> int:
        return len(self._under_way)

    def keep(self, task: asyncio.Task[object]) -> None:
        """Hold a reference to a task until the task ends, as asyncio holds tasks only weakly."""
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def finish(self) -> None:
        """Wait until all have arrived or failed."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    def bill(self, signal: Told, called: str, bill: Told, *, attempt: Hashable) -> None:
        """Send the bill of all tries of a call so far.

        Args:
            called: the model that was called. attempt: a text that differs between the tries of one
                call.
        """
        request_id, number = signal["request_id"], signal.get("attempt", 0)
        # Each bill is of all tries of an attempt so far; the service learns what is new in it.
        total, notes = fitting(self._attempts.add((request_id, number), attempt, bill))
        for note in notes:
            log.warning("request %s: %s", request_id, note)
        planned = {"attempt": number} if number else {}
        self.keep(asyncio.create_task(self._bill(request_id, called, {**total, **planned})))

    async def _bill(self, request_id: str, called: str, bill: Told) -> None:
        try:
            router = await self._router()
            await router.cost(request_id, model=self._name_of(called), **bill)
        except (RouterError, ValueError) as error:
            log.error("the bill of request %s is lost: %s: %s", request_id, bill, error)

    def judge(self, request_id: str, attempt: int, verifier: str, verdict: float) -> None:
        """Send a verdict."""
        self.keep(asyncio.create_task(self._verdict(request_id, attempt, verifier, verdict)))

    async def _verdict(self, request_id: str, attempt: int, verifier: str, said: float) -> None:
        try:
            router = await self._router()
            await router.verdict(request_id, verifier, said, attempt=attempt)
        except (RouterError, ValueError) as error:
            log.error("the verdict of %s on request %s is lost: %s", verifier, request_id, error)
