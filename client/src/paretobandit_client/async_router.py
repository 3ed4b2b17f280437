"""The router of one application: ask, call, report."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

from paretobandit_client import checks
from paretobandit_client.attempt import Attempt, attempts_of
from paretobandit_client.checks import UNANSWERED
from paretobandit_client.client_errors import (
    NoDecision,
    Refused,
    RouterError,
    Undelivered,
    Unreachable,
)
from paretobandit_client.decision import Decision
from paretobandit_client.fallbacks import Fallbacks
from paretobandit_client.sent_events import Ask, Cost, Event, Needs, Refusal, Reward, Route, Verdict

log = logging.getLogger(__name__)
Fields = Mapping[str, Any]
"""Fields of a request, a bill or a reward, by their names; each is checked before it is sent."""


class Link(Protocol):
    """A connection to the service."""

    async def start(self, *, seconds: float) -> None: ...

    async def stop(self, *, seconds: float) -> int: ...

    async def ask(self, event: Ask, *, seconds: float | None) -> Route: ...

    def deliver(self, event: Event) -> asyncio.Task[None]: ...

    def is_outage(self, event: Ask) -> bool: ...


@dataclass(slots=True)
class Counts:
    """The outcomes of calls of `route` since the start."""

    decided: int = 0
    fallbacks: int = 0
    refused: int = 0


class Router:
    """Ask one router of the service for models, and report costs and rewards. Safe to share between
    tasks of one event loop.

    Args:
        router_id: which router.
        bootstrap: Kafka's address; by default PB_BOOTSTRAP, else 127.0.0.1:9092.
        url: the address of a `pbstream gateway` instead, to go over HTTP (extra `http`).
        key: its API key.
        fallback: the model to call when no decision comes in time. None: `route` raises NoDecision
            then.
        timeout: seconds to wait for a decision.
        prefix: of the service's topics; by default PB_PREFIX, else `pb.`.
        connect_timeout: seconds that entering waits for Kafka; with a fallback the application then
            starts anyway.
        delivery_timeout: seconds until a bill or a reward that Kafka does not take is given up.
        close_timeout: seconds that closing waits for events being delivered; the rest is lost, and
            counted in the log.
        on_refused: called with every refusal that no call waits for: of bills and rewards, and of
            requests given up.
        kafka: what aiokafka's clients need beside the address, such as `security_protocol`.

    Example:
        async with Router("chat", fallback="small") as router:
            decision = await router.route("Why is the sky blue?")
            await decision.cost(input_tokens=12, output_tokens=310)
            await decision.reward(0.9, source="judge")
    """

    def __init__(
        self,
        router_id: str,
        *,
        bootstrap: str | None = None,
        url: str | None = None,
        key: str | None = None,
        fallback: str | None = None,
        timeout: float = 0.25,
        prefix: str | None = None,
        connect_timeout: float = 5.0,
        delivery_timeout: float = 120.0,
        close_timeout: float = 10.0,
        on_refused: Callable[[Refusal], None] | None = None,
        kafka: Mapping[str, object] | None = None,
    ) -> None:
        self.router_id = checks.router_id(router_id)
        self.fallback = None if fallback is None else checks.model(fallback)
        self.timeout = checks.seconds(timeout)
        self.counts = Counts()
        self._fallbacks = Fallbacks()
        self._connect_timeout = connect_timeout
        self._closing = close_timeout
        if url is not None:
            _only_one_way(bootstrap=bootstrap, prefix=prefix, kafka=kafka, on_refused=on_refused)
            self._link: Link = _http_link(
                url, key=key, router_id=router_id, delivery_timeout=delivery_timeout
            )
            return
        if key is not None:
            raise ValueError("a key is for a gateway: give its url, too")
        from paretobandit_client.kafka import KafkaLink  # who goes over HTTP needs none of it

        self._link = KafkaLink(
            bootstrap or os.environ.get("PB_BOOTSTRAP") or "127.0.0.1:9092",
            prefix=os.environ.get("PB_PREFIX", "pb.") if prefix is None else prefix,
            router_ids=[router_id],
            delivery_timeout=delivery_timeout,
            on_refused=on_refused or _log_refusal,
            kafka=kafka,
        )

    async def __aenter__(self) -> Self:
        try:
            await self._link.start(seconds=self._connect_timeout)
        except Unreachable as error:
            if self.fallback is None:
                await self._link.stop(seconds=0.0)
                raise
            log.warning("%s; until then every answer is the fallback %s", error, self.fallback)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Deliver what is on its way, and disconnect."""
        if left := await self._link.stop(seconds=self._closing):
            log.error("%d events could not be delivered to Kafka", left)

    async def route(
        self,
        prompt: str | None = None,
        *,
        context: Sequence[float] | None = None,
        request_id: str | None = None,
        session: str | None = None,
        session_budget_usd: float | None = None,
        allowed_models: Iterable[str] | None = None,
        max_price_per_1k: float | None = None,
        input_tokens: int | None = None,
        needs: Needs | Fields | None = None,
        verifiers: Iterable[str] | None = None,
        metadata: Fields | None = None,
        fallback: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - not how long to try, but when to fall back
    ) -> Decision:
        """Return which model shall answer a prompt.

        Args:
            context: features of the prompt in its place, shape (d,), the last one 1.0.
            request_id: an id of your own: the same one gets the same decision again. Absent: a new
                one.
            session: the conversation, or an agent's run, to which the request belongs.
            session_budget_usd: dollars that all calls of the session may cost together.
            input_tokens: how many the call will send, system prompt and history included; then only
                the output is uncertain.
            needs: what the model must offer, such as `{"vision": True}`, see `Needs`.
            verifiers: those of the router that can look at this answer; None: all, empty:
                none.
            fallback, timeout: replace the router's for this request.

        Raises:
            Refused: the service refused the request, and why.
            NoDecision: none came in time, and there is no fallback.
            ValueError: arguments that no service would take.
        """
        fallback = checks.model(fallback) if fallback else self.fallback
        event = checks.checked(
            Ask(
                router_id=self.router_id,
                request_id=request_id or uuid.uuid4().hex,
                prompt=prompt,
                context=context,  # type: ignore[arg-type]  # checked, as all others are
                allowed_models=allowed_models,  # type: ignore[arg-type]
                max_price_per_1k=max_price_per_1k,
                input_tokens=input_tokens,
                metadata=metadata,  # type: ignore[arg-type]
                session_id=session,
                session_budget_usd=session_budget_usd,
                needs=needs,  # type: ignore[arg-type]
                verifiers=verifiers,  # type: ignore[arg-type]
            )
        )
        allowed = event.allowed_models
        if fallback is not None and allowed is not None and fallback not in allowed:
            raise ValueError(
                f"the fallback {fallback!r} is not among allowed_models; name another one with "
                "fallback=…"
            )
        seconds = self.timeout if timeout is None else checks.seconds(timeout)
        try:
            route = await self._link.ask(event, seconds=seconds)
        except Refused:
            self.counts.refused += 1
            raise
        except (TimeoutError, Undelivered) as error:
            if fallback is None:
                raise NoDecision(event.request_id, seconds) from None
            self.counts.fallbacks += 1
            is_outage = self._link.is_outage(event)
            self._fallbacks.note(event, fallback, seconds=seconds, why=error, is_outage=is_outage)
            return Decision(event.request_id, fallback, True, None, self)
        self.counts.decided += 1
        return Decision(route.request_id, route.model, False, route, self)

    async def attempts(self, prompt: str | None = None, **options: Any) -> AsyncIterator[Attempt]:
        """Yield the calls to make for a prompt, the next one only if the answer before does not
        pass; arguments and errors are those of `route`.

        Example:
            async for attempt in router.attempts("Write a test."):
                answer = await call(attempt.model)
                await attempt.cost(input_tokens=12, output_tokens=310)
                if attempt.verify:
                    await attempt.verdict(attempt.verify, await passes(answer))
        """
        decision = await self.route(prompt, **options)
        async for attempt in attempts_of(decision, self):
            yield attempt

    async def route_many(
        self, prompts: Iterable[str | Fields], **options: Any
    ) -> list[Decision | Refused]:
        """Ask for many decisions at once; a refusal takes its place in the list.

        Args:
            prompts: prompts, or the arguments of `route` for each.
            options: arguments of `route` for all.
        """
        each = [{"prompt": prompt} if isinstance(prompt, str) else prompt for prompt in prompts]
        asked = [asyncio.create_task(self.route(**{**options, **one})) for one in each]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Refused):
                raise answer
        return answers  # type: ignore[return-value]

    async def cost(
        self,
        request_id: str,
        *,
        cost_usd: float | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        model: str | None = None,
        revision: int = 0,
        status: str | None = None,
        retry_after_seconds: float | None = None,
        latency_ms: float | None = None,
        first_token_ms: float | None = None,
        cached_input_tokens: int | None = None,
        attempt: int | None = None,
        answered_by: str | None = None,
    ) -> None:
        """Report what a request cost, from any process; see `Decision.cost`. `model`: the one that
        was called; to be named where it is not the decided one. `attempt`: which call of its plan.
        """
        if status in UNANSWERED and cost_usd is None and None in (input_tokens, output_tokens):
            cost_usd = 0.0
        await self._send(
            Cost(
                router_id=self.router_id,
                request_id=request_id,
                cost_usd=cost_usd,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                model=model,
                revision=revision,
                status=status,
                retry_after_seconds=retry_after_seconds,
                latency_ms=latency_ms,
                first_token_ms=first_token_ms,
                cached_input_tokens=cached_input_tokens,
                attempt=attempt,
                answered_by=answered_by,
            )
        )

    async def verdict(
        self,
        request_id: str,
        verifier: str,
        value: float,
        *,
        attempt: int | None = None,
        revision: int = 0,
    ) -> None:
        """Report what a verifier says of the answer of one call, in [0, 1], from any process; see
        `Attempt.verdict`. It is no reward."""
        await self._send(
            Verdict(
                router_id=self.router_id,
                request_id=request_id,
                verifier=verifier,
                verdict=value,
                attempt=attempt,
                revision=revision,
            )
        )

    async def reward(
        self,
        request_id: str | None = None,
        value: float | None = math.nan,
        *,
        source: str,
        session_id: str | None = None,
        model: str | None = None,
        revision: int = 0,
        observed_at: datetime | None = None,
        attempt: int | None = None,
        cant_tell: bool = False,
    ) -> None:
        """Report how good a request's answer was, or a whole session, in [0, 1], from any process,
        days later; returns when Kafka has it.

        Args:
            request_id: the judged answer's; None: `session_id` was judged, and each of its requests
                gets the reward that has none of its own.
            value: the reward; None: the source withdraws what it said, see `withdraw`.
            source: who judged: `human`, `judge`, `user`, `metric` or another name; higher ranks
                revise lower ones.
            model: the model that was called; to be named where it is not the decided one and the
                bill may come later.
            revision: a higher one of the same source replaces the reward.
            observed_at: when it was judged, with a time zone.
            attempt: which call of its plan gave the answer; None: the last one.
            cant_tell: whether who was asked has seen the answer and can't tell; `value` is None.

        Raises:
            ValueError: out of range, or neither a request nor a session.
            Undelivered: Kafka did not take it in time; report it again.
        """
        await self._send(
            Reward(
                router_id=self.router_id,
                request_id=request_id or "",
                session_id=session_id if request_id is None else None,
                reward=value,
                source=source,
                model=model,
                revision=revision,
                observed_at=observed_at,
                attempt=attempt,
                cant_tell=cant_tell or None,
            )
        )

    async def withdraw(
        self,
        request_id: str | None = None,
        *,
        source: str,
        session_id: str | None = None,
        revision: int = 1,
        cant_tell: bool = False,
    ) -> None:
        """Withdraw the label of a source: what was learned of it is undone, as if it had never
        come. Arguments and errors as for `reward`.

        Args:
            revision: above that of the label. The source's next label needs a higher one.
        """
        await self.reward(
            request_id,
            None,
            source=source,
            session_id=session_id,
            revision=revision,
            cant_tell=cant_tell,
        )

    async def cost_many(self, bills: Iterable[Fields]) -> None:
        """Report many bills, the arguments of `cost` each. Raises as `cost`, when all were
        tried.
        """
        await _all(self.cost(**bill) for bill in bills)

    async def reward_many(self, rewards: Iterable[Fields], **options: Any) -> None:
        """Report many rewards, the arguments of `reward` each; `options` are for all. Raises as
        `reward`, when all were tried.
        """
        await _all(self.reward(**{**options, **one}) for one in rewards)

    async def _send(self, event: Cost | Reward | Verdict) -> None:
        checked = checks.checked(event)
        try:
            await asyncio.shield(self._link.deliver(checked))
        except RouterError as error:
            # Its text says everything: the frames of the delivery would bury it.
            raise error.with_traceback(None) from None


async def _all(reports: Iterable[Any]) -> None:
    results = await asyncio.gather(*reports, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _only_one_way(**of_kafka: object) -> None:
    if given := [name for name, value in of_kafka.items() if value is not None]:
        raise ValueError(f"url goes over HTTP, {', '.join(given)} over Kafka: give one of them")


def _http_link(url: str, **options: Any) -> Link:
    try:
        from paretobandit_client.http import HttpLink
    except ImportError as error:
        raise RuntimeError("url needs aiohttp: pip install './client[http]'") from error
    return HttpLink(checks.url(url), **options)


def _log_refusal(refusal: Refusal) -> None:
    log.warning(
        "%s of %s refused: %s: %s",
        refusal.topic,
        refusal.request_id,
        refusal.reason,
        refusal.message,
    )
