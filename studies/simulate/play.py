"""Play a history, changed by a scenario or not, into topics of another prefix, where workers decide
its requests anew.

A player that was stopped or killed continues where it was: it reads those topics back, and sends no
event a second time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import to_builtins

from schemas.routers import RouterDeclared
from streams.settings import Settings
from studies.history.happened import Declared
from studies.simulate.cases import Case
from studies.simulate.player_ledger import Due, Ledger, Sent
from studies.simulate.simulation import Outcomes
from studies.simulate.target import Target
from studies.simulate.world import World

CHUNK = 500
"""Cases that a thread reads ahead."""
MAX_UNDECIDED = 500
"""Most requests in flight to the workers."""
QUIET = 60.0
"""Seconds without a decision after which playing is given up."""


class NoWorker(Exception):
    """No worker decides the played requests."""


class SamePrefix(Exception):
    """History must not be written to."""


@dataclass(slots=True)
class Progress:
    """Progress of a player; `already` counts requests that were in the target's topics before."""

    requests: int = 0
    already: int = 0
    decided: int = 0
    refused: int = 0
    bills: int = 0
    rewards: int = 0


class Player:
    """Send requests at their pace, and for each decision its bill and reward when they are due.

    Args:
        source: the service's settings; target: those of the topics to play into, on the same Kafka
            or another.
        speed: times the recorded pace; 0: as fast as workers decide.
        progress: called now and then.

    Raises:
        SamePrefix: the target is the source.
    """

    def __init__(
        self,
        world: World,
        outcomes: Outcomes,
        *,
        router_id: str,
        source: Settings,
        target: Settings,
        speed: float,
        progress: Callable[[Progress], None],
    ) -> None:
        if (source.bootstrap, source.prefix) == (target.bootstrap, target.prefix):
            raise SamePrefix(
                f"the topics of {target.prefix} are the history; choose another prefix"
            )
        self._world = world
        self._outcomes = outcomes
        self._target = Target(target, router_id)
        self._speed = speed
        self._progress = progress
        self.state = Progress()
        self._ledger = Ledger(world, outcomes, Sent())
        self._era: tuple[int, int] | None = None
        self._base: RouterDeclared | None = None
        self._declared = 0
        self._started: tuple[float, float] | None = None

    async def play(self, cases: Iterator[Case | Declared]) -> Progress:
        """Play everything; return when all is decided and all feedback sent.

        Raises:
            NoWorker: no decision came for a minute.
        """
        async with self._target:
            # Read back before anything is sent, to know what an earlier player sent.
            self._ledger = Ledger(self._world, self._outcomes, await self._target.read_back())
            # In a thread: reading ahead must not hold up answers and heartbeats.
            while chunk := await asyncio.to_thread(lambda: list(islice(cases, CHUNK))):
                for case in chunk:
                    if isinstance(case, Declared):
                        if case.router is not None:
                            # Contexts are sent: the workers need no projection for them.
                            self._base = case.router.model_copy(update={"projection": None})
                            self._declared += 1
                    elif self._base is not None:
                        await self._submit(case, self._base)
            await self._drain(0)
            await self._feed(everything=True)
            await self._target.flush()
        return self.state

    async def _submit(self, case: Case, base: RouterDeclared) -> None:
        """Send a case's requests, those which an earlier player has not sent."""
        for copy in range(self._world.copies(case.index)):
            # A copy is another request, or the worker would answer it as a repeat.
            request_id = case.request_id if copy == 0 else f"{case.request_id}~{copy}"
            if not self._ledger.submit(request_id, case, copy):
                self.state.already += 1
                continue
            await self._wait_for_turn(case.at)
            await self._declare(case, base)
            await self._target.send("requests", request_id, _request_fields(case, request_id))
            self.state.requests += 1
            # Answers are read between, so that bills come at their place among the decisions.
            if self.state.requests % 50 == 0:
                await self._listen(0.0)
        if self._ledger.undecided >= MAX_UNDECIDED:
            await self._drain(MAX_UNDECIDED // 2)

    async def _wait_for_turn(self, at: float) -> None:
        """Wait until a request of this time is due; time begins with the first request that is
        sent.
        """
        if self._speed == 0.0:
            return
        if self._started is None:
            self._started = time.monotonic(), at
        moment = self._started[0] + (at - self._started[1]) / self._speed
        while (left := moment - time.monotonic()) > 0.0:
            await self._listen(min(left, 0.1))

    async def _declare(self, case: Case, base: RouterDeclared) -> None:
        """Declare the router as it is at this case, if that is not what was declared last; the
        requests before it come first.
        """
        era = self._world.era(case.index), self._declared
        if era == self._era:
            return
        self._era = era
        router = self._world.router(base, case.index)
        if not self._target.declares(router):
            # Down to one: the request that is about to be sent counts as undecided.
            await self._drain(1)
            offset = await self._target.declare(router)
            # Wait until it is in force: later requests must be decided under it.
            await self._until(lambda: self._target.config_offset >= offset)

    async def _drain(self, down_to: int) -> None:
        """Wait until at most this many requests have no decision."""
        await self._target.flush()
        await self._until(lambda: self._ledger.undecided <= down_to)

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Listen until something is reached.

        Raises:
            NoWorker: nothing was decided for a minute.
        """
        last, since = self._ledger.decided, time.monotonic()
        while not reached():
            await self._listen(0.2)
            if self._ledger.decided != last:
                last, since = self._ledger.decided, time.monotonic()
            if time.monotonic() - since > QUIET:
                settings = self._target.settings
                raise NoWorker(
                    f"no decision in {QUIET:g} s: does a worker serve the prefix "
                    f"{settings.prefix}? "
                    f"PB_PREFIX={settings.prefix} PB_APP_ID={settings.app_id} pbstream worker"
                )

    async def _listen(self, seconds: float) -> None:
        """Take answers in, and send the feedback that is due after each."""
        for answer in await self._target.answers(seconds):
            self._ledger.answer(answer.request_id, answer.model)
        await self._feed()

    async def _feed(self, *, everything: bool = False) -> None:
        for due in self._ledger.due(everything=everything):
            if due.topic == "costs":
                await self._target.send("costs", due.request_id, _bill_fields(due))
                self.state.bills += 1
            else:
                await self._target.send(
                    "rewards", due.request_id, {"reward": due.value, "source": "judge"}
                )
                self.state.rewards += 1
        self.state.decided, self.state.refused = self._ledger.decided, self._ledger.refused
        self._progress(self.state)


def _bill_fields(due: Due) -> dict[str, object]:
    told = zip(("latency_ms", "first_token_ms"), due.times, strict=True)
    fields: dict[str, object] = {"cost_usd": due.value}
    return fields | {name: 1e3 * one for name, one in told if one is not None}


def _request_fields(case: Case, request_id: str) -> dict[str, object]:
    fields: dict[str, object] = {"context": case.x.tolist()}
    if case.session_id is not None:
        # A copy of a request belongs to a copy of its session.
        fields["session_id"] = case.session_id + request_id.removeprefix(case.request_id)
    if case.said is not None:
        fields |= case.said
    if case.allowed_models is not None:
        fields["allowed_models"] = list(case.allowed_models)
    if case.max_price_per_1k is not None:
        fields["max_price_per_1k"] = case.max_price_per_1k
    if case.input_tokens is not None:
        fields["input_tokens"] = case.input_tokens
    if case.needs is not None:
        fields["needs"] = to_builtins(case.needs)
    return fields
