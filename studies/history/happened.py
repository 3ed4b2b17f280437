"""Define the events that may happen to a router."""

from __future__ import annotations

from typing import final

from msgspec import Struct

from router_state.since import Step
from schemas.quick import Bill, Request, Reward
from schemas.routers import RouterDeclared
from studies.history.reading import Decision


@final
class Declared(Struct, frozen=True, gc=False):
    """A declaration comes in force; None: the router is gone."""

    router_id: str
    offset: int
    at: float
    router: RouterDeclared | None
    applied: tuple[int, int] = (-1, -1)


@final
class Decided(Struct, frozen=True, gc=False):
    """A request got its decision."""

    router_id: str
    offset: int
    request: Request
    decision: Decision
    at: float


@final
class Billed(Struct, frozen=True, gc=False):
    """A bill is booked."""

    router_id: str
    offset: int
    at: float
    bill: Bill


@final
class Rewarded(Struct, frozen=True, gc=False):
    """A reward is learned."""

    router_id: str
    offset: int
    at: float
    reward: Reward


@final
class Swept(Struct, frozen=True, gc=False):
    """Time and bounds moved the router: commitments expired, requests or models were forgotten."""

    router_id: str
    step: Step


@final
class Untold(Struct, frozen=True, gc=False):
    """The history lacks something that later events depend on; `why` says what."""

    router_id: str
    why: str


Happened = Declared | Decided | Billed | Rewarded | Swept | Untold
Feedback = Billed | Rewarded
