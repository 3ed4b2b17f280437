"""Report costs of calls, verdicts of verifiers, and the quality of answers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from paretobandit_client import bounds
from paretobandit_client.checked_events import checked
from paretobandit_client.checks import UNANSWERED
from paretobandit_client.client_errors import RouterError
from paretobandit_client.link import Link
from paretobandit_client.sent_events import Cost, Reward, Verdict

Fields = Mapping[str, Any]
"""Fields of a request, a bill or a reward, by their names; each is checked before it is sent."""


class RouterReports:
    """The reports about requests of one router, from any process; see `Router`."""

    router_id: str
    _link: Link

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
        """Report what a request cost, from any process; see `Decision.cost`. `model`: the called
        model, to be named if it is not the decided one. `attempt`: number of the call in its
        request's plan.
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
        value: float | bool,
        *,
        attempt: int | None = None,
        revision: int = 0,
    ) -> None:
        """Report a verifier's verdict on the answer of one call, True, False or a number in [0, 1],
        from any process; see `Attempt.verdict`. A verdict is no reward.
        """
        await self._send(
            Verdict(
                router_id=self.router_id,
                request_id=request_id,
                verifier=verifier,
                verdict=bounds.verdict(value),
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
            request_id: id of the request whose answer was judged; None: the session was judged, and
                each of its requests without a reward of its own gets this one.
            value: the reward; None: the source withdraws its reward, see `withdraw`.
            source: who judged: `human`, `judge`, `user`, `metric` or another name; higher ranks
                revise lower ones.
            model: the model that was called; to be named where it is not the decided one and the
                bill may come later.
            revision: a higher one of the same source replaces the reward.
            observed_at: when the answer was judged, with a time zone.
            attempt: number of the call whose answer was judged; None: the last call of the plan.
            cant_tell: whether the source has seen the answer and can't tell; `value` is None.

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
        """Report many bills. Each one is a mapping of the arguments of `cost`. After all were
        tried, raises as `cost` does.
        """
        await _all(self.cost(**bill) for bill in bills)

    async def reward_many(self, rewards: Iterable[Fields], **options: Any) -> None:
        """Report many rewards. Each one is a mapping of the arguments of `reward`; `options` are
        arguments for all of them. After all were tried, raises as `reward` does.
        """
        await _all(self.reward(**{**options, **one}) for one in rewards)

    async def _send(self, event: Cost | Reward | Verdict) -> None:
        sound = checked(event)
        try:
            await asyncio.shield(self._link.deliver(sound))
        except RouterError as error:
            # Its text says everything: the frames of the delivery would bury it.
            raise error.with_traceback(None) from None


async def _all(reports: Iterable[Any]) -> None:
    results = await asyncio.gather(*reports, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
