"""The router of one application: ask, call, report."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from paretobandit_client import checks
from paretobandit_client.attempt import Attempt, attempts_of
from paretobandit_client.checked_events import checked
from paretobandit_client.client_errors import (
    NoDecision,
    Refused,
    Undelivered,
    Unreachable,
)
from paretobandit_client.decision import Decision
from paretobandit_client.fallbacks import Fallbacks
from paretobandit_client.link import link_of
from paretobandit_client.router_reports import Fields, RouterReports
from paretobandit_client.sent_events import Ask, Needs, Refusal, Signals
from paretobandit_client.verifying import Verifier, Verify, verifiers_of

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """The outcomes of calls of `route` since the start."""

    decided: int = 0
    fallbacks: int = 0
    refused: int = 0


class Router(RouterReports):
    """Ask one router of the service for models, and report costs and rewards. Safe to share between
    tasks of one event loop.

    Args:
        router_id: which router.
        bootstrap: Kafka's address; by default PB_BOOTSTRAP, else 127.0.0.1:9092.
        url: the address of a `pbstream gateway`, to connect over HTTP instead (extra `http`).
        key: the gateway's API key.
        fallback: the model to call when no decision comes in time. None: `route` raises NoDecision
            then.
        timeout: seconds to wait for a decision.
        prefix: of the service's topics; by default PB_PREFIX, else `pb.`.
        connect_timeout: seconds that entering waits for Kafka; with a fallback the application then
            starts anyway.
        delivery_timeout: seconds until a bill or a reward that Kafka does not take is given up.
        close_timeout: seconds that closing waits for events being delivered; the rest is lost, and
            counted in the log.
        on_refused: called with every refusal of this router's events that no call waits for: of
            bills and rewards, and of requests given up. Other clients' are among them.
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
        self._link = link_of(
            router_id,
            bootstrap=bootstrap,
            url=url,
            key=key,
            prefix=prefix,
            delivery_timeout=delivery_timeout,
            on_refused=on_refused,
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
        follows: str | None = None,
        verdicts: Fields | None = None,
        signals: Signals | Fields | None = None,
        metadata: Fields | None = None,
        fallback: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - not how long to try, but when to fall back
    ) -> Decision:
        """Return which model shall answer a prompt.

        Args:
            context: features of the prompt, sent instead of the prompt, shape (d,), the last one
                1.0.
            request_id: an id of your own; a repeated id gets the same decision again. Absent: a new
                id.
            session: the conversation, or an agent's run, to which the request belongs.
            session_budget_usd: dollars that all calls of the session may cost together.
            input_tokens: number of tokens that the call will send, system prompt and history
                included; then only the cost of the output is uncertain.
            needs: what the model must offer, such as `{"vision": True}`, see `Needs`.
            verifiers: names of the router's verifiers that can look at this answer; None: all of
                them. The decision may have a plan then, which `attempts` follows. Empty: no
                verifier looks, and the decision is one model.
            follows: id of the request that this one tries again: models that have answered it are
                ruled out while there are others.
            verdicts, signals: verdicts by verifier, and `Signals`, on the answer of the request
                that `follows` names.
            fallback, timeout: replace the router's for this request.

        Raises:
            Refused: the service refused the request; the text says why.
            NoDecision: none came in time, and there is no fallback.
            ValueError: arguments that no service would take.
        """
        fallback = checks.model(fallback) if fallback else self.fallback
        event = checked(
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
                follows=follows,
                verdicts=verdicts,  # type: ignore[arg-type]
                signals=signals,  # type: ignore[arg-type]
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

    async def attempts(
        self,
        prompt: str | None = None,
        *,
        verifiers: Mapping[str, Verify | Verifier] | Iterable[str] | None = None,
        **options: Any,
    ) -> AsyncIterator[Attempt]:
        """Yield the calls to make for a prompt, the next one only if the answer before does not
        pass; other arguments and errors are those of `route`.

        Args:
            verifiers: callables by the names of verifiers, for `Attempt.check`; see `Verifier`.
                Names alone: the application looks at answers itself, and reports with
                `Attempt.verdict`.

        Example:
            async for attempt in router.attempts("Give me JSON.", verifiers={"json": is_json}):
                answer = await call(attempt.model)
                await attempt.cost(input_tokens=12, output_tokens=310)
                await attempt.check(answer)
        """
        given = verifiers_of(verifiers) if isinstance(verifiers, Mapping) else {}
        decision = await self.route(prompt, verifiers=verifiers, **options)
        async for attempt in attempts_of(decision, self, given):
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
