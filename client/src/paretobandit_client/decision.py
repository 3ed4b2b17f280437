"""A decision for the application: the model to call, and methods to report its cost and quality."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Protocol, TypedDict

from paretobandit_client import checks
from paretobandit_client.sent_events import Call, Route

log = logging.getLogger(__name__)


class Bill(TypedDict, total=False):
    """The arguments of a bill, see `Decision.cost`."""

    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    revision: int
    retry_after_seconds: float | None
    latency_ms: float | None
    first_token_ms: float | None
    cached_input_tokens: int | None
    answered_by: str | None


class Reports(Protocol):
    """The receiver of a decision's bills and rewards; see `Router`."""

    def cost(
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
    ) -> Awaitable[None]: ...

    def reward(
        self,
        request_id: str,
        value: float | None,
        *,
        source: str,
        model: str | None = None,
        revision: int = 0,
        observed_at: datetime | None = None,
        attempt: int | None = None,
    ) -> Awaitable[None]: ...


@cache
def _warn_of_plans(router_id: str) -> None:
    """Say once of a router that its plans are not followed."""
    log.warning(
        "router %s plans attempts, and the first one alone is billed: router.attempts(…) follows "
        "plans, and route(…, verifiers=()) asks for one model",
        router_id,
    )


@cache
def _warn_of_unknown(router_id: str, name: str) -> None:
    """Say once of a verifier that its router does not declare it."""
    log.warning(
        "router %s declares no verifier %r, so it looks at nothing: mend the name, or add it to "
        "the router's verifiers",
        router_id,
        name,
    )


@dataclass(slots=True)
class Decision:
    """The decision about one request: the model that shall answer it.

    Attributes:
        model: the model to call. Once a report names another model as the called one, that model,
            which later reports name by default.
        fallback: whether no decision came in time, so that `model` is the declared fallback;
            reports tell the service.
        route: the decision with all its terms; None for a fallback.
    """

    request_id: str
    model: str
    fallback: bool
    route: Route | None
    _reports: Reports = field(repr=False, compare=False)
    _revision: int = field(default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.route is not None:
            for name in self.route.unknown_verifiers:
                _warn_of_unknown(self.route.router_id, name)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Return the models to try if this one does not answer, the best first."""
        return () if self.route is None else self.route.fallbacks

    @property
    def call(self) -> Call:
        """Return how to call the model: its name, and the parameters that go with the call."""
        return self.call_of(self.model)

    def call_of(self, model: str) -> Call:
        """Return how to call the model, or one of `fallbacks`, see `Route.call_of`."""
        return Call(model, {}) if self.route is None else self.route.call_of(model)

    def span_attributes(self) -> dict[str, str | float]:
        """Return the decision as attributes of the span of its call.

        `gen_ai.request.model` is OpenTelemetry's name, `pb.request_id` and `pb.router_id` are those
        by which the gateway and `pbstream ingest` find the request of a span.
        """
        attributes: dict[str, str | float] = {
            "gen_ai.request.model": self.model,
            "pb.request_id": self.request_id,
            "pb.model": self.model,
        }
        if self.route is not None:
            named = ("router_id", "reason", "propensity", "expected_reward", "expected_cost_usd")
            attributes |= {f"pb.{name}": getattr(self.route, name) for name in named}
        return attributes

    async def cost(
        self,
        *,
        cost_usd: float | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        model: str | None = None,
        revision: int | None = None,
        status: str | None = None,
        retry_after_seconds: float | None = None,
        latency_ms: float | None = None,
        first_token_ms: float | None = None,
        cached_input_tokens: int | None = None,
        answered_by: str | None = None,
    ) -> None:
        """Report what the call cost, in dollars or in tokens; returns when Kafka has it.

        A call that was not answered may have cost nothing: `cost(status="timeout")`. After a call
        to one of `fallbacks`, report the dollars of all attempts together.

        Args:
            model: the model that was called, if it is not `self.model`; to be named in the first
                report, a bill or a reward.
            revision: a higher one replaces the bill; absent: one more than what failed attempts
                have reported.
            status: how the call ended: `ok`, `error`, `timeout`, `rate_limited`, `refused`,
                `cancelled`, or `gone` if the provider has the model no more.
            retry_after_seconds: for how long the model wants to be left alone.
            cached_input_tokens: number of the input tokens that came from the model's cache.
            answered_by: which model answered, as the provider's answer names it; its dated
                snapshots are the model itself.
            latency_ms, first_token_ms: from the call to the answer's end, and to its beginning.

        Raises:
            ValueError: neither dollars nor both token counts, or out of range.
            Undelivered: Kafka did not take it in time; report it again.
        """
        if self.route is not None and len(self.route.plan) > 1:
            _warn_of_plans(self.route.router_id)
        await self._reports.cost(
            self.request_id,
            cost_usd=cost_usd,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            model=self._called(model),
            revision=self._revision if revision is None else revision,
            status=status,
            retry_after_seconds=retry_after_seconds,
            latency_ms=latency_ms,
            first_token_ms=first_token_ms,
            cached_input_tokens=cached_input_tokens,
            answered_by=answered_by,
        )
        if status in checks.UNANSWERED:
            self._revision = max(self._revision, revision or 0) + 1

    async def reward(
        self,
        value: float,
        *,
        source: str,
        model: str | None = None,
        revision: int = 0,
        observed_at: datetime | None = None,
    ) -> None:
        """Report how good the answer was, in [0, 1]; arguments and errors as for `cost` and
        `Router.reward`.
        """
        await self._reports.reward(
            self.request_id,
            value,
            source=source,
            model=self._called(model),
            revision=revision,
            observed_at=observed_at,
        )

    async def withdraw(self, *, source: str, revision: int = 1) -> None:
        """Withdraw the label of a source, see `Router.withdraw`."""
        await self._reports.reward(self.request_id, None, source=source, revision=revision)

    def _called(self, model: str | None) -> str:
        """Return the model to name in reports, once a report has named one."""
        if model is not None:
            self.model = checks.model(model)
        return self.model
