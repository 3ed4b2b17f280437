"""The router for code without an event loop: it has the calls of `Router`, and runs them on an
event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from paretobandit_client.async_router import Counts, Router
from paretobandit_client.attempt import Attempt
from paretobandit_client.client_errors import Refused, RouterError
from paretobandit_client.decision import Bill, Decision
from paretobandit_client.router_reports import Fields
from paretobandit_client.sent_events import Call, Route

T = TypeVar("T")
NOT_OPEN = "the router is not open: use it in a with block"
"""Message of a call before or after the `with` block."""


@dataclass(frozen=True, slots=True)
class SyncDecision:
    """A `Decision` whose reports block until Kafka has them."""

    decision: Decision
    _router: SyncRouter = field(repr=False, compare=False)

    @property
    def request_id(self) -> str:
        """Return the request's id, for reports from elsewhere."""
        return self.decision.request_id

    @property
    def model(self) -> str:
        """Return the model to call, see `Decision`."""
        return self.decision.model

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Return the models to go on with, see `Decision.fallbacks`."""
        return self.decision.fallbacks

    @property
    def call(self) -> Call:
        """Return how to call the model, see `Decision.call`."""
        return self.decision.call

    def call_of(self, model: str) -> Call:
        """Return how to call one of `fallbacks`, see `Decision.call_of`."""
        return self.decision.call_of(model)

    @property
    def fallback(self) -> bool:
        """Tell whether no decision came in time."""
        return self.decision.fallback

    @property
    def route(self) -> Route | None:
        """Return the decision with all its terms; None for a fallback."""
        return self.decision.route

    def span_attributes(self) -> dict[str, str | float]:
        """Return the attributes for the span of the call, see `Decision.span_attributes`."""
        return self.decision.span_attributes()

    def cost(self, **bill: Any) -> None:
        """Report what the call cost, see `Decision.cost`."""
        self._router.run(self.decision.cost(**bill))

    def reward(self, value: float, *, source: str, **more: Any) -> None:
        """Report how good the answer was, see `Decision.reward`."""
        self._router.run(self.decision.reward(value, source=source, **more))

    def withdraw(self, *, source: str, revision: int = 1) -> None:
        """Withdraw the label of a source, see `Router.withdraw`."""
        self._router.run(self.decision.withdraw(source=source, revision=revision))


@dataclass(frozen=True, slots=True)
class SyncAttempt:
    """An `Attempt` whose reports block until Kafka has them."""

    attempt: Attempt
    _router: SyncRouter = field(repr=False, compare=False)

    @property
    def decision(self) -> SyncDecision:
        """Return the decision of the request."""
        return SyncDecision(self.attempt.decision, self._router)

    @property
    def number(self) -> int:
        """Return the number of the call, from 0."""
        return self.attempt.number

    @property
    def model(self) -> str:
        """Return the model to call."""
        return self.attempt.model

    @property
    def call(self) -> Call:
        """Return how to call the model, see `Decision.call`."""
        return self.attempt.call

    @property
    def verify(self) -> str | None:
        """Return the verifier that the plan asks for, see `Attempt`."""
        return self.attempt.verify

    @property
    def accept_at(self) -> float | None:
        """Return the verdict from which the answer is returned, see `Attempt`."""
        return self.attempt.accept_at

    @property
    def goes_on(self) -> bool:
        """Tell whether another attempt follows, see `Attempt`."""
        return self.attempt.goes_on

    @property
    def request_id(self) -> str:
        """Return the request's id, for reports from elsewhere."""
        return self.attempt.request_id

    def cost(
        self, *, status: str | None = None, model: str | None = None, **bill: Unpack[Bill]
    ) -> None:
        """Report what the call cost, see `Attempt.cost`."""
        self._router.run(self.attempt.cost(status=status, model=model, **bill))

    def verdict(self, verifier: str, value: float | bool, *, revision: int = 0) -> None:
        """Report a verifier's verdict on the answer, see `Attempt.verdict`."""
        self._router.run(self.attempt.verdict(verifier, value, revision=revision))

    def check(self, answer: object) -> float | None:
        """Have the plan's verifier look at the answer, see `Attempt.check`."""
        return self._router.run(self.attempt.check(answer))

    def reward(
        self,
        value: float,
        *,
        source: str,
        revision: int = 0,
        observed_at: datetime | None = None,
    ) -> None:
        """Report how good the answer was, see `Attempt.reward`."""
        self._router.run(
            self.attempt.reward(value, source=source, revision=revision, observed_at=observed_at)
        )

    def withdraw(self, *, source: str, revision: int = 1) -> None:
        """Withdraw the label of a source, see `Router.withdraw`."""
        self._router.run(self.attempt.withdraw(source=source, revision=revision))


class SyncRouter:
    """A `Router` for threads: arguments and errors are those of `Router`. Make it after forking,
    and close it.

    Example:
        with SyncRouter("chat", fallback="small") as router:
            decision = router.route("Why is the sky blue?")
            decision.cost(input_tokens=12, output_tokens=310)
    """

    def __init__(self, router_id: str, **options: Any) -> None:
        self._arguments = (router_id, options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._router: Router | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"router-{self._arguments[0]}", daemon=True
        )
        self._thread.start()
        try:
            self._router = self.run(self._open())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Deliver what is on its way, and disconnect; a second call does nothing."""
        if self._router is not None:
            router, self._router = self._router, None
            try:
                self.run(router.close())
            finally:
                self._end()

    @property
    def counts(self) -> Counts:
        """Return the outcomes of calls of `route` since the start."""
        return self._opened.counts

    def route(self, prompt: str | None = None, **options: Any) -> SyncDecision:
        """Return which model shall answer a prompt, see `Router.route`."""
        return SyncDecision(self.run(self._opened.route(prompt, **options)), self)

    def attempts(self, prompt: str | None = None, **options: Any) -> Iterator[SyncAttempt]:
        """Yield the calls to make for a prompt, see `Router.attempts`."""
        each = self._opened.attempts(prompt, **options)
        while (attempt := self.run(_next(each))) is not None:
            yield SyncAttempt(attempt, self)

    def route_many(
        self, prompts: Iterable[str | Fields], **options: Any
    ) -> list[SyncDecision | Refused]:
        """Ask for many decisions at once, see `Router.route_many`."""
        answers = self.run(self._opened.route_many(prompts, **options))
        return [
            answer if isinstance(answer, Refused) else SyncDecision(answer, self)
            for answer in answers
        ]

    def cost(self, request_id: str, **bill: Any) -> None:
        """Report what a request cost, see `Router.cost`."""
        self.run(self._opened.cost(request_id, **bill))

    def reward(
        self,
        request_id: str | None = None,
        value: float | None = math.nan,
        *,
        source: str,
        observed_at: datetime | None = None,
        **more: Any,
    ) -> None:
        """Report how good a request's answer or a session was, see `Router.reward`."""
        self.run(
            self._opened.reward(request_id, value, source=source, observed_at=observed_at, **more)
        )

    def withdraw(self, request_id: str | None = None, *, source: str, **more: Any) -> None:
        """Withdraw the label of a source, see `Router.withdraw`."""
        self.run(self._opened.withdraw(request_id, source=source, **more))

    def verdict(
        self,
        request_id: str,
        verifier: str,
        value: float | bool,
        *,
        attempt: int | None = None,
        revision: int = 0,
    ) -> None:
        """Report a verifier's verdict on an answer, see `Router.verdict`."""
        said = self._opened.verdict(request_id, verifier, value, attempt=attempt, revision=revision)
        self.run(said)

    def cost_many(self, bills: Iterable[Fields]) -> None:
        """Report many bills, see `Router.cost_many`."""
        self.run(self._opened.cost_many(bills))

    def reward_many(self, rewards: Iterable[Fields], **options: Any) -> None:
        """Report many rewards, see `Router.reward_many`."""
        self.run(self._opened.reward_many(rewards, **options))

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Run a coroutine on the router's loop and return its result; from any thread but the
        loop's own.
        """
        if self._loop is None:
            work.close()
            raise RuntimeError(NOT_OPEN)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except RouterError as error:
            raise error.with_traceback(None) from None

    @property
    def _opened(self) -> Router:
        if self._router is None:
            raise RuntimeError(NOT_OPEN)
        return self._router

    async def _open(self) -> Router:
        router_id, options = self._arguments
        return await Router(router_id, **options).__aenter__()

    def _end(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


async def _next(each: AsyncIterator[Attempt]) -> Attempt | None:
    return await anext(each, None)
