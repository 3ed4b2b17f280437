"""Events on the wire: one module per topic, frozen and strict; everything is importable
from here.

`agents` and everything above may import it. It imports `ground`, and never `router_state`.
"""

from typing import Final

from schemas.alerts import AlertKind, AlertRaised
from schemas.costs import CostReported
from schemas.dlq import DeadLetter
from schemas.event import Event, MalformedEvent, Value, decode, decode_keyed, encode
from schemas.families import FamilyEstimated
from schemas.fields import ModelName, RequestId, RouterId, UtcTime
from schemas.headers import BASED_ON, FORWARDED, REPEATED, based_on, is_forwarded
from schemas.kin import KinNoted
from schemas.lambdas import LambdaUpdated
from schemas.leases import LeaseNoted
from schemas.pools import PoolDeclared, decode_pool
from schemas.priors import CostPrior, InlinePrior, LikePrior, Prior, ReferencedPrior
from schemas.reasons import Reason
from schemas.refusals import EventRefused
from schemas.requests import RequestSubmitted
from schemas.rewards import RewardObserved
from schemas.routers import Cap, Caps, ModelDeclared, RouterDeclared, decode_router
from schemas.routes import Candidate, RouteDecided, RouteReason

EVENTS: Final[dict[str, type[Value]]] = {
    "routers": RouterDeclared,
    "requests": RequestSubmitted,
    "routes": RouteDecided,
    "costs": CostReported,
    "rewards": RewardObserved,
    "pools": PoolDeclared,
    "leases": LeaseNoted,
    "kin": KinNoted,
    "lambda": LambdaUpdated,
    "families": FamilyEstimated,
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
    "FamilyEstimated",
    "InlinePrior",
    "KinNoted",
    "LambdaUpdated",
    "LeaseNoted",
    "LikePrior",
    "MalformedEvent",
    "ModelDeclared",
    "ModelName",
    "PoolDeclared",
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
    "Value",
    "based_on",
    "decode",
    "decode_keyed",
    "decode_pool",
    "decode_router",
    "encode",
    "is_forwarded",
]
