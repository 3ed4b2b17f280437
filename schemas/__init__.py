"""Events on the wire: one module per topic, frozen and strict; everything is importable
from here.

`agents` and everything above may import it. It imports `ground`, and never `router_state`.
"""

from typing import Final

from schemas.alerts import AlertKind, AlertRaised
from schemas.costs import CostReported
from schemas.dlq import DeadLetter
from schemas.event import Event, MalformedEvent, decode, decode_keyed, encode
from schemas.fields import ModelName, RequestId, RouterId, UtcTime
from schemas.headers import BASED_ON, FORWARDED, REPEATED, based_on, is_forwarded
from schemas.lambdas import LambdaUpdated
from schemas.priors import CostPrior, InlinePrior, LikePrior, Prior, ReferencedPrior
from schemas.reasons import Reason
from schemas.refusals import EventRefused
from schemas.requests import RequestSubmitted
from schemas.rewards import RewardObserved
from schemas.routers import Cap, Caps, ModelDeclared, RouterDeclared, decode_router
from schemas.routes import Candidate, RouteDecided, RouteReason

EVENTS: Final[dict[str, type[Event]]] = {
    "routers": RouterDeclared,
    "requests": RequestSubmitted,
    "routes": RouteDecided,
    "costs": CostReported,
    "rewards": RewardObserved,
    "lambda": LambdaUpdated,
    "alerts": AlertRaised,
    "refusals": EventRefused,
}
"""Schema of each topic's value, by the topic's name without prefix."""

__all__ = [
    "BASED_ON",
    "EVENTS",
    "FORWARDED",
    "REPEATED",
    "AlertKind",
    "AlertRaised",
    "Candidate",
    "Cap",
    "Caps",
    "CostPrior",
    "CostReported",
    "DeadLetter",
    "Event",
    "EventRefused",
    "InlinePrior",
    "LambdaUpdated",
    "LikePrior",
    "MalformedEvent",
    "ModelDeclared",
    "ModelName",
    "Prior",
    "Reason",
    "ReferencedPrior",
    "RequestId",
    "RequestSubmitted",
    "RewardObserved",
    "RouteDecided",
    "RouteReason",
    "RouterDeclared",
    "RouterId",
    "UtcTime",
    "based_on",
    "decode",
    "decode_keyed",
    "decode_router",
    "encode",
    "is_forwarded",
]
