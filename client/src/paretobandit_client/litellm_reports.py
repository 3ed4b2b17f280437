"""Deliver what LiteLLM's calls cost, and what verifiers say of their answers, beside the calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence

from paretobandit_client.async_router import Router
from paretobandit_client.attempt_sums import Attempts
from paretobandit_client.calls import Message
from paretobandit_client.client_errors import RouterError
from paretobandit_client.litellm_bills import (
    Facts,
    Theirs,
    answered_by_of,
    cached_of,
    cost_of,
    metadata_of,
)
from paretobandit_client.litellm_signals import named_in
from paretobandit_client.litellm_streams import Stream
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
        """Wait until all reports have arrived or failed."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    def report(
        self,
        signal: Facts,
        kwargs: Facts,
        response: Theirs,
        *,
        revision: int,
        started: object,
        more: Mapping[str, object],
    ) -> None:
        """Bill a call that ended, with an answer or without."""
        metadata, money = metadata_of(kwargs), cost_of(kwargs, response)
        if money is None and revision > 0:
            log.warning(
                "request %s: neither price nor usage is known: no bill", signal["request_id"]
            )
            return
        named = answered_by_of(kwargs, response) if revision > 0 else {}
        bill = {**(money or {"cost_usd": 0.0}), **cached_of(response), **named, **more}
        attempt = kwargs.get("litellm_call_id"), started, metadata.get("deployment"), revision
        self._try(signal, metadata, {**bill, "revision": revision}, attempt=attempt)

    async def bill_unread(
        self,
        signal: Facts,
        stream: Stream,
        counted: Callable[[Sequence[Message]], Awaitable[int | None]],
    ) -> None:
        """Bill a stream that nobody reads any more for what it has delivered.

        Args:
            counted: returns the number of tokens in messages.
        """
        metadata = metadata_of(stream.call)
        into = await counted(stream.call.get("messages") or ())
        out = await counted([{"role": "assistant", "content": "".join(stream.text)}])
        if into is not None and out is not None:
            tokens = {"input_tokens": into, "output_tokens": out if stream.text else 0}
            bill = {**tokens, "status": "cancelled", "revision": 0}
            attempt = stream.call.get("litellm_call_id"), metadata.get("deployment")
            self._try(signal, metadata, bill, attempt=attempt)

    def _try(self, signal: Facts, metadata: Facts, bill: Facts, *, attempt: Hashable) -> None:
        called = named_in(signal, metadata.get("deployment") or signal["candidate"])
        self.bill(signal, called, bill, attempt=attempt)

    def bill(self, signal: Facts, called: str, bill: Facts, *, attempt: Hashable) -> None:
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

    async def _bill(self, request_id: str, called: str, bill: Facts) -> None:
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
