"""Play a scenario against a running service: send the clients' events and take in its answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from commands.demo.demo_clients import Outcome, Sent, Traffic
from doors.console.bus import Bus, Follower, open_bus
from doors.console.changing_declarations import put_in_force
from doors.console.failures import NoAnswer
from drawing.pareto import Pareto
from ground.messages import Record
from schemas import (
    AlertRaised,
    CostReported,
    DeadLetter,
    LambdaUpdated,
    MalformedEvent,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    RouterDeclared,
    decode,
    encode,
)
from schemas.event import Event
from streams.settings import Settings
from watching.board import Board

READS: dict[str, type[Event]] = {
    "routes": RouteDecided,
    "lambda": LambdaUpdated,
    "alerts": AlertRaised,
}
"""Topics that the service writes, with their events."""
WRITES: dict[type[Event], str] = {
    RequestSubmitted: "requests",
    CostReported: "costs",
    RewardObserved: "rewards",
}
"""Events that clients write, with their topics."""

Look = Callable[[Board], None]


@dataclass(frozen=True, slots=True)
class Play:
    """The outcome of a scenario.

    Attributes:
        outcomes: answered requests, in the order of their answers.
        refused: reasons by request_id.
        dead_letters: every dead letter of the router's partitions, feedback and declarations
            included.
        state: the router's last state, which contains all feedback.
        alerts: what the service reported.
        picture: what the router reached, as the dashboard and `pbstream watch` compute it.
        seconds: from the first request to the last answer, and until all feedback was applied.
    """

    outcomes: list[Outcome]
    refused: dict[str, str]
    dead_letters: list[DeadLetter]
    state: LambdaUpdated
    alerts: list[AlertRaised]
    picture: Pareto
    seconds: tuple[float, float]


class Player:
    """Plays one scenario.

    Example:
        play = await Player(settings, Traffic(scenario)).play()

    Args:
        settings: where the service is.
        traffic: what clients do.
        patience: seconds without any answer after which it gives up; longer than a failover, where
            workers are killed.
        look: called with the live numbers whenever something has happened, and at least every 0.1
            s.
    """

    def __init__(
        self,
        settings: Settings,
        traffic: Traffic,
        *,
        patience: float = 60.0,
        look: Look | None = None,
    ) -> None:
        self._settings = settings
        self._traffic = traffic
        self._patience = patience
        self._look = look or (lambda board: None)
        self._board = Board(traffic.scenario.router_id)
        self._dead_letters: list[DeadLetter] = []
        self._alerts: list[AlertRaised] = []
        self._in_force: tuple[dict[str, object], int] | None = None

    async def play(self) -> Play:
        """Send everything, wait for every answer, and until the state shows that all feedback is in
        it.

        Raises:
            NoAnswer: nothing was answered for `patience` seconds.
            Refused: the service does not take the router.
        """
        traffic, router_id = self._traffic, self._traffic.scenario.router_id
        names = ("routers", *WRITES.values(), *READS, "dlq")
        async with (
            open_bus(self._settings, *names) as bus,
            # Followed before the first declaration, or the first answers would be missed.
            bus.follow(*READS, "dlq", router_id=router_id) as records,
        ):
            await self._declare(bus, traffic.scenario.declarations[0][1])
            started = time.monotonic()
            await self._until(bus, records, lambda: traffic.done)
            answered = time.monotonic() - started
            await self._until(bus, records, self._caught_up)
        assert self._board.state is not None
        return Play(
            outcomes=traffic.outcomes,
            refused=traffic.refused,
            dead_letters=self._dead_letters,
            state=self._board.state,
            alerts=self._alerts,
            picture=self._board.pareto(),
            seconds=(answered, time.monotonic() - started),
        )

    async def _until(self, bus: Bus, records: Follower, over: Callable[[], bool]) -> None:
        heard = time.monotonic()
        while not over():
            await self._send(bus, self._traffic.step())
            arrivals = await records.arrivals(within=0.1)
            for name, record in arrivals:
                self._take(bus, name, record)
            now = time.monotonic()
            # Only silence counts, not the total time: a slow machine is no dead worker.
            heard = now if arrivals else heard
            if now - heard > self._patience:
                raise NoAnswer(self._patience, web_port=self._settings.web_port)
            self._look(self._board)

    def _caught_up(self) -> bool:
        """Tell whether the published state contains all bills and rewards, or their dead letters
        came back.
        """
        state, traffic = self._board.state, self._traffic
        # Refused bills and rewards never come into the state.
        lost = len(self._dead_letters) - len(traffic.refused)
        expected = traffic.bills_sent + traffic.rewards_sent - lost
        return (
            state is not None
            and state.decided >= len(traffic.outcomes)
            and state.settled + state.rewards_applied >= expected
        )

    async def _send(self, bus: Bus, events: list[Sent]) -> None:
        now = time.monotonic()
        pending: list[tuple[str, Event]] = []
        for event in events:
            if isinstance(event, RouterDeclared):
                await bus.send_all(pending)
                pending = []
                await self._declare(bus, event)
                continue
            pending.append((WRITES[type(event)], event))
            if not isinstance(event, RequestSubmitted):
                self._board.observe(event, at=now)
        await bus.send_all(pending)

    async def _declare(self, bus: Bus, declared: RouterDeclared) -> None:
        """Put a declaration in force, unless it is already."""
        document, before = orjson.loads(encode(declared)), self._in_force
        # The end of a shock may declare what is already in force; writing it again would only wait.
        if before is not None and before[0] == document:
            return
        based_on = before and before[1]
        state = await put_in_force(
            bus, declared.router_id, document, based_on=based_on, seconds=self._patience
        )
        self._in_force = document, state.config_offset
        self._board.observe(state, at=time.monotonic())

    def _take(self, bus: Bus, name: str, record: Record) -> None:
        if record.key is not None and record.key != self._board.router_id.encode():
            return
        event: Any = (
            DeadLetter.from_headers(record.headers)
            if name == "dlq"
            else decode(READS[name], record.value)
        )
        self._board.observe(event, at=time.monotonic())
        match event:
            case RouteDecided():
                self._traffic.answer(event)
            case AlertRaised():
                self._alerts.append(event)
            case DeadLetter():
                self._dead_letters.append(event)
                if bus.name_of(event.topic) == "requests":
                    self._refuse(record.value or b"", event.reason)

    def _refuse(self, value: bytes, reason: str) -> None:
        try:
            self._traffic.refuse(decode(RequestSubmitted, value).request_id, reason)
        except MalformedEvent:
            return
