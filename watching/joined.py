"""Remember the models of recent requests, to match their bills and labels."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from router_state.sources.source_labels import SourceLabel
from schemas import RouteDecided
from watching.planned_requests import Planned

W = TypeVar("W")

MOST = 100_000
"""Most requests that are remembered, over all routers; some minutes at 1,000 events a second."""
MOST_EARLY = 10_000
"""Most bills and labels that are kept until their decision, which is on another topic, is read."""


@dataclass(slots=True)
class Request:
    """A decided request: its router and model, and the label and the bill that count at present.

    Attributes:
        propensity: probability with which the model was chosen.
        expected_reward, expected_cost_usd: reward and dollars that the decision expected of the
            chosen model.
        plan: its calls, where it has a plan; propensity and cost are then of the first one.
        label_source, label_rank: source of the label, and its rank and revision; bill_revision:
            revision of the bill.
        labels: the last label of each source, where the router declares sources, or one was
            withdrawn.
    """

    router_id: str
    model: str
    propensity: float = 1.0
    expected_reward: float = 0.0
    expected_cost_usd: float = 0.0
    label: float | None = None
    label_source: str = ""
    label_rank: tuple[int, int] = (-sys.maxsize, -1)
    labels: dict[str, SourceLabel] | None = None
    bill: float | None = None
    bill_revision: int = -1
    plan: Planned | None = None

    def called(self, number: int) -> str:
        """Return the model of a call of the request."""
        return self.model if self.plan is None else self.plan.steps[number].model


IN_SESSION = 100
"""Last requests of a session that its reward is credited to."""


class Joined(Generic[W]):
    """The last requests, by the hash of their ids: a collision of 64-bit hashes is not to be
    expected.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._requests: dict[int, Request] = {}
        self._early: dict[int, list[W]] = {}
        self._sessions: dict[int, deque[int]] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, decision: RouteDecided) -> bool:
        """Remember a decision; tell whether it is the first one of its request."""
        key = hash((decision.router_id, decision.request_id))
        # A repeated answer: its request was counted.
        if key in self._requests:
            return False
        self._requests[key] = request = Request(
            # One text a name, not one for each of the hundred thousand requests.
            sys.intern(decision.router_id),
            sys.intern(decision.model),
            decision.propensity,
            decision.expected_reward,
            decision.expected_cost_usd,
        )
        if decision.plan:
            request.plan = Planned(decision.plan)
            request.expected_cost_usd = decision.plan[0].expected_cost_usd
            request.propensity = decision.first_propensity or decision.propensity
        if len(self._requests) > self._most:
            del self._requests[next(iter(self._requests))]
        if decision.session_id is not None:
            self._note(hash((decision.router_id, decision.session_id)), key)
        return True

    def forget(self, router_id: str) -> None:
        """Forget the requests of a removed router."""
        kept = self._requests.items()
        self._requests = {key: one for key, one in kept if one.router_id != router_id}

    def _note(self, session: int, key: int) -> None:
        """Remember that a request belongs to a session."""
        found = self._sessions.pop(session, None)
        if found is None:
            found = deque(maxlen=IN_SESSION)
        # Sessions stand in order of use: the first has been idle for the longest time.
        self._sessions[session] = found
        found.append(key)
        if len(self._sessions) > MOST_EARLY:
            del self._sessions[next(iter(self._sessions))]

    def session(self, router_id: str, session_id: str) -> list[Request]:
        """Return the requests of a session that are known."""
        keys = self._sessions.get(hash((router_id, session_id)), ())
        return [self._requests[key] for key in keys if key in self._requests]

    def get(self, router_id: str, request_id: str) -> Request | None:
        """Return a request; None if it is not known, or known no longer."""
        return self._requests.get(hash((router_id, request_id)))

    def wait(self, router_id: str, request_id: str, what: W) -> None:
        """Keep a bill or a label until its decision is read."""
        self._early.setdefault(hash((router_id, request_id)), []).append(what)
        if len(self._early) > MOST_EARLY:
            del self._early[next(iter(self._early))]

    def waited(self, router_id: str, request_id: str) -> list[W]:
        """Return the bills and labels that were kept for a decision, and forget them."""
        return self._early.pop(hash((router_id, request_id)), [])
