"""Topic `kin`: reports of members to their family (`report`), priors of a family for a member
(`prior`), and estimates of another family (`brought`). Workers write and read it, and `pbstream
families import` writes it.

Key: whom it is for: the family of a report, the router of a prior. Version 1. Compatible: new
optional fields.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from schemas.event import Event, documented, optional
from schemas.families import MAX_MODELS, FamilyEstimated, ModelSums, Number
from schemas.fields import Count, ModelName, NonNegative, RouterId, UtcTime
from schemas.reasons import Reason
from schemas.requests import MAX_DIMENSIONS

TOPIC: Final = "kin"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""


class KinNoted(Event):
    """Carry a report, a prior or another family's estimates between a family and one of its
    members.
    """

    model_config = documented(
        TOPIC,
        key=KEY,
        valid=[
            {
                "kind": "report",
                "router_id": "support",
                "family": "support",
                "member_id": "acme.chat",
                "born": 3,
                "n": 7,
                "dimensions": 26,
                "seen": [120, 131],
                "noise": [0.08, 0.3],
                "names": ["small", "large"],
                "observed_at": "2026-11-21T09:31:00Z",
            },
            {
                "kind": "prior",
                "router_id": "acme.chat",
                "family": "support",
                "member_id": "acme.chat",
                "born": 3,
                "n": 8,
                "models": {"small": {"rewards": "", "bills": ""}},
                "noise": [0.08, 0.3],
                "members": 11,
                "observed_at": "2026-11-21T09:31:01Z",
            },
        ],
        invalid={Reason.MISSING_FIELD: {"kind": "report", "router_id": "support"}},
    )

    kind: Literal["report", "prior", "brought"]
    router_id: Annotated[
        RouterId, Field(description="Whom it is for: the family, or the router of a prior")
    ]
    family: RouterId
    member_id: RouterId
    born: Annotated[Number, Field(description="Number of the membership")]
    n: Annotated[Number, Field(description="Number of the prior, or of the last one it has taken")]
    models: Annotated[dict[ModelName, ModelSums], Field(max_length=MAX_MODELS)] | None = optional(
        "Sums by model; absent: none"
    )
    dimensions: Annotated[int, Field(ge=2, le=MAX_DIMENSIONS)] | None = optional()
    projection: str = ""
    gives: bool = True
    takes: bool = True
    left: Annotated[bool, Field(description="The member is none any more")] = False
    seen: tuple[Count, Count] = (0, 0)
    noise: tuple[NonNegative, NonNegative] = (0.0, 0.0)
    names: Annotated[tuple[ModelName, ...], Field(max_length=MAX_MODELS)] | None = optional(
        "All models of the member; absent: as in its last report"
    )
    more: Annotated[bool, Field(description="More of the prior follows")] = False
    members: Count = 0
    aside: bool = False
    slope: float = 1.0
    refused: str | None = optional("Why the family does not take the member")
    brought: FamilyEstimated | None = optional("What another family knows, or histories tell")
    observed_at: UtcTime
