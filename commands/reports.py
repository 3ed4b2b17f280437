"""Send a bill or a reward, and wait for its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doors.console.bus import open_bus
from doors.console.changing_declarations import refusal_of
from doors.console.failures import Failure, NoAnswer
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import absence_of
from ground.messages import Placed, Record
from schemas import CostReported, LambdaUpdated, RewardObserved, decode
from schemas.lambdas import MOST_UNBOOKED

if TYPE_CHECKING:
    from streams.settings import Settings

Booked = Literal["costs", "rewards"]
Outcome = Literal["booked", "duplicate", "waiting", "taken_in", "refused", "no_answer"]


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one event.

    Attributes:
        placed: place of the event (`topic`, `partition`, `offset`).
        outcome: `booked`; `duplicate`: it was booked before; `waiting`: its request is not known
            yet; `taken_in`: a worker that has just taken over, or has too much to do to publish
            more, has read it; `refused`; `no_answer`: it stays queued.
        state: the first state of the router that contains it.
        failure: why it was refused, or that nobody answered.
    """

    request_id: str
    placed: Placed
    outcome: Outcome
    state: LambdaUpdated | None = None
    failure: Failure | None = None

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON's types."""
        sent = {
            "topic": self.placed.topic,
            "partition": self.placed.partition,
            "offset": self.placed.offset,
        }
        found: dict[str, object] = {
            "sent": sent,
            "outcome": self.outcome,
            "state": self.state and self.state.model_dump(mode="json"),
        }
        return found if self.failure is None else {**found, "message": self.failure.message}


async def report(
    settings: Settings,
    name: Literal["costs", "rewards"],
    event: CostReported | RewardObserved,
    *,
    seconds: float,
) -> Report:
    """Send one event to its topic (short name) and return what became of it.

    Raises:
        NoRouter, Failure: the router is not declared, or its declaration was refused. The event was
        not sent.
    """
    async with open_bus(settings, name, *STANDING, "dlq") as bus:
        known = await bus.latest("lambda", event.router_id)
        if known is None or known.value is None:
            raise await absence_of(bus, event.router_id)
        async with bus.follow("lambda", "dlq", router_id=event.router_id) as records:
            placed = await bus.send(name, event)

            def noticed(topic: str, record: Record) -> Report | None:
                if topic == "dlq":
                    refused = refusal_of(record, placed, "the event")
                    return (
                        None
                        if refused is None
                        else Report(about(event), placed, "refused", failure=refused)
                    )
                if record.key != event.router_id.encode() or record.value is None:
                    return None
                state = decode(LambdaUpdated, record.value)
                outcome = outcome_of(state, name, placed.offset)
                return (
                    None
                    # The dead letter gives the reason of a refusal; `pb.lambda` only says that
                    # there was one.
                    if outcome in (None, "refused")
                    else Report(about(event), placed, outcome, state)
                )

            try:
                return await records.until(noticed, seconds=seconds)
            except NoAnswer as error:
                error.message += (
                    " It stays queued, and is taken in when one runs: there is no need to send "
                    "it again."
                )
                return Report(about(event), placed, "no_answer", failure=error)


def about(event: CostReported | RewardObserved) -> str:
    """Return the request, or the session, that an event is about."""
    if isinstance(event, RewardObserved) and event.request_id is None:
        return f"session {event.session_id}"
    return event.request_id or ""


def outcome_of(state: LambdaUpdated, name: Booked, offset: int) -> Outcome | None:
    """Return the outcome that a state lists for the event at this offset; None if the state does
    not contain the event.

    Only the first state that contains an event lists its outcome.
    """
    if state.applied is None or getattr(state.applied, name) < offset:
        return None
    # A worker that has just taken over does not know which events its predecessor left unbooked.
    if state.unbooked is None:
        return "taken_in"
    listed = {one.offset: one.outcome for one in state.unbooked if one.topic == name}
    if offset in listed:
        return listed[offset]
    # The list drops its oldest entries, so an older event may have been on it.
    cut = len(state.unbooked) == MOST_UNBOOKED and offset < min(listed, default=offset + 1)
    return "taken_in" if cut else "booked"
