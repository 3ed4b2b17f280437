"""The attempts of one request: a cheap model first, and the next one only if its answer does not
pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Unpack

from paretobandit_client import bounds, checks
from paretobandit_client.decision import Bill, Decision, Reports
from paretobandit_client.sent_events import Call, Step
from paretobandit_client.verifying import Verifier, verdict_of


class Verdicts(Reports, Protocol):
    """The receiver of bills, rewards and verdicts; see `Router`."""

    def verdict(
        self,
        request_id: str,
        verifier: str,
        value: float | bool,
        *,
        attempt: int | None = None,
        revision: int = 0,
    ) -> Awaitable[None]: ...


@dataclass(slots=True)
class Attempt:
    """One call of a request.

    Attributes:
        decision: the decision of the request; number: the call's number, from 0.
        model: the model to call. Once a bill names another model as the called one, that model.
        verify: the verifier that the plan asks for; None: nobody needs to look at the answer.
        accept_at: the verdict from which the answer is returned; None: it is returned anyway.
    """

    decision: Decision
    number: int
    model: str
    verify: str | None
    accept_at: float | None
    _reports: Verdicts = field(repr=False, compare=False)
    _verifiers: Mapping[str, Verifier] = field(default_factory=dict, repr=False, compare=False)
    _failed: bool = field(default=False, repr=False, compare=False)
    _stopped: bool = field(default=False, repr=False, compare=False)
    _revision: int = field(default=0, repr=False, compare=False)
    _verdicts: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def goes_on(self) -> bool:
        """Tell whether another attempt follows, as far as it is known by now: the call failed, or
        its answer did not pass."""
        return self.accept_at is not None and (self._failed or self._stopped)

    @property
    def request_id(self) -> str:
        """Return the request's id, for reports from elsewhere."""
        return self.decision.request_id

    @property
    def call(self) -> Call:
        """Return how to call the model, see `Decision.call`."""
        return self.decision.call_of(self.model)

    async def cost(
        self, *, status: str | None = None, model: str | None = None, **bill: Unpack[Bill]
    ) -> None:
        """Report what the call cost, see `Decision.cost`. A call that failed is followed by the
        next one."""
        if model is not None:
            self.model = checks.model(model)
        # What follows depends on the call, not on whether Kafka takes its bill.
        self._failed = status in checks.UNANSWERED
        bill.setdefault("revision", self._revision)
        await self._reports.cost(
            self.request_id, model=self.model, status=status, attempt=self.number, **bill
        )
        self._revision += self._failed

    async def verdict(self, verifier: str, value: float | bool, *, revision: int = 0) -> None:
        """Report a verifier's verdict on the answer: True or False, or a number from 0 to 1.

        If the verdict of the plan's verifier is below `accept_at`, the next attempt follows. Report
        nothing of a verifier that fails or takes too long: the answer counts as it is.

        Args:
            revision: a higher one replaces the verifier's verdict; otherwise its first one counts.
        """
        number, before = bounds.verdict(value), self._verdicts.get(verifier)
        counts = before is None or revision > before
        if counts:
            self._verdicts[verifier] = revision
        if verifier == self.verify and self.accept_at is not None:
            # A verdict is of an answer: the call did not fail, or a retry of it did not.
            self._failed = False
            if counts:
                self._stopped = number < self.accept_at
        await self._reports.verdict(
            self.request_id, verifier, number, attempt=self.number, revision=revision
        )

    async def check(self, answer: object) -> float | None:
        """Have the plan's verifier look at the answer, and report its verdict, which replaces an
        earlier one.

        None: nobody needs to look, or the verifier fails or takes too long; then the answer counts
        as it is.

        Raises:
            ValueError: `Router.attempts` was given no callable for this verifier.
        """
        if self.verify is None:
            return None
        if self.verify not in self._verifiers:
            raise ValueError(
                f"no callable for {self.verify!r}: attempts(…, verifiers={{{self.verify!r}: …}})"
            )
        found = await verdict_of(self.verify, self._verifiers[self.verify], answer)
        if found is not None:
            revision = self._verdicts.get(self.verify, -1) + 1
            await self.verdict(self.verify, found, revision=revision)
        return found

    async def reward(
        self,
        value: float,
        *,
        source: str,
        revision: int = 0,
        observed_at: datetime | None = None,
    ) -> None:
        """Report how good the answer was, see `Decision.reward`."""
        await self._reports.reward(
            self.request_id,
            value,
            source=source,
            model=self.model,
            revision=revision,
            observed_at=observed_at,
            attempt=self.number,
        )

    async def withdraw(self, *, source: str, revision: int = 1) -> None:
        """Withdraw the label of a source, see `Router.withdraw`."""
        await self.decision.withdraw(source=source, revision=revision)


async def attempts_of(
    decision: Decision, reports: Verdicts, verifiers: Mapping[str, Verifier] | None = None
) -> AsyncIterator[Attempt]:
    """Yield the attempts of a decision, the next one only if the one before asks for it."""
    planned = () if decision.route is None else decision.route.plan
    for number, step in enumerate(planned or (Step(model=decision.model),)):
        attempt = Attempt(
            decision, number, step.model, step.verify, step.accept_at, reports, verifiers or {}
        )
        decision.model = step.model
        yield attempt
        if not attempt.goes_on:
            return
