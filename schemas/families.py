"""Topic `families`: a family of routers as its owner knows it, for people and programs: its
members, how alike they are, and what a newcomer starts with. A null value: the family is gone.

Key: family, raw UTF-8, never absent. Version 1. Compatible: new optional fields.
"""

from typing import Annotated, Final

from pydantic import Field, model_validator

from schemas.event import Content, Value, documented, optional
from schemas.fields import LARGEST_INT, Count, ModelName, NonNegative, RouterId, UtcTime, refuse
from schemas.reasons import Reason
from schemas.requests import MAX_DIMENSIONS

TOPIC: Final = "families"
KEY: Final = "family"
"""The topic behind its prefix, and the field that its records are keyed by."""
MOST_LISTED: Final = 500
"""Most members that a record lists; it counts all of them."""
MAX_MODELS: Final = 1000
"""Most models of one record."""

Packed = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=8_000_000)]
"""Sums of one model as base64: the bytes that `pbstream families export` writes, and that
`pbstream families import` reads.
"""
Number = Annotated[int, Field(ge=-1, le=LARGEST_INT)]


class Membership(Content):
    """Name a router's family, and whether the router reports to it and learns from it."""

    name: RouterId
    gives: bool = True
    takes: bool = True

    @model_validator(mode="after")
    def _does_something(self) -> "Membership":
        if not (self.gives or self.takes):
            raise refuse(Reason.INVALID_FIELD, "neither gives nor takes")
        return self


Subject = Annotated[str, Field(min_length=1, max_length=300)]
"""The subject of shared numbers: a capability, a colon, and a verifier or a judge."""
SharedNumbers = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=400)]
"""Precisions, then precisions × means, as 32-bit floats in base64."""

SharedKnown = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=600)]
"""Precisions, precisions × means, and variances between members ÷ those expected, as 32-bit floats
in base64."""


class ModelSums(Content):
    """Sums of one model: of its rewards, and of the logarithms of its bills ÷ list price."""

    rewards: Packed = ""
    bills: Packed = ""
    shared: Annotated[dict[Subject, SharedNumbers], Field(max_length=64)] | None = optional(
        "What members share of this model beside: what verifiers' verdicts mean; absent: nothing"
    )


class FamilyModel(Content):
    """Show what a router has learned about one of its models from its family."""

    model: ModelName
    requests: Annotated[
        NonNegative, Field(description="Requests that this knowledge counts for still")
    ]


class FamilyStanding(Content):
    """Show a router's place in its family."""

    name: RouterId
    gives: bool
    takes: bool
    members: Annotated[Count, Field(description="Other members that have told anything")]
    taken: Annotated[Count, Field(description="Number of the last prior that it has taken over")]
    aside: Annotated[
        bool, Field(description="The family leaves it out, as its labels mean something else")
    ]
    models: tuple[FamilyModel, ...] = ()
    refused: str | None = optional("Why the family does not take it")


class MemberListed(Content):
    """Show a member's place in its family."""

    router_id: RouterId
    gives: bool
    takes: bool
    rewards: Annotated[Count, Field(description="Rewards that it has told of")]
    weight: NonNegative
    level: Annotated[float, Field(description="By how much its rewards lie above the others'")]
    aside: bool


class SideListed(Content):
    """Show a family's estimates of one model's rewards, or of its bills."""

    members: Annotated[Count, Field(description="Members that have told of it")]
    apart: Annotated[
        NonNegative,
        Field(description="Deviation between members: of rewards, or of the logarithm of bills"),
    ]
    apart_interval: tuple[NonNegative, NonNegative] | None = optional(
        "Between which `apart` lies, 95 %; absent: no member has told of the model"
    )
    requests: Annotated[NonNegative, Field(description="Requests that a newcomer's prior is of")]
    expected: Annotated[
        float | None,
        Field(description="What a newcomer expects at the members' mean context; null: nothing"),
    ]
    knows: Annotated[Packed, Field(description="What all say of it: precision, and × mean")]
    scatter: Annotated[
        tuple[NonNegative, NonNegative],
        Field(description="σ² ÷ variance between members, of features and of the bias"),
    ]


class ModelListed(Content):
    """Give a family's estimates of one model."""

    model: ModelName
    rewards: SideListed | None = optional()
    bills: SideListed | None = optional()
    shared: Annotated[dict[Subject, SharedKnown], Field(max_length=64)] | None = optional(
        "What is known of this model beside: what verifiers' verdicts mean; absent: nothing"
    )


class FamilyEstimated(Value):
    """Publish a family's estimates, and list its members."""

    model_config = documented(
        TOPIC,
        key=KEY,
        valid=[
            {
                "family": "support",
                "dimensions": 26,
                "projection": "",
                "members": 12,
                "listed": [
                    {
                        "router_id": "acme.chat",
                        "gives": True,
                        "takes": True,
                        "rewards": 412,
                        "weight": 1.0,
                        "level": 0.02,
                        "aside": False,
                    }
                ],
                "models": [
                    {
                        "model": "mistral-large",
                        "rewards": {
                            "members": 11,
                            "apart": 0.04,
                            "apart_interval": [0.028, 0.069],
                            "requests": 61.5,
                            "expected": 0.78,
                            "knows": "",
                            "scatter": [310.0, 55.0],
                        },
                    }
                ],
                "noise": [0.08, 0.3],
                "observed_at": "2026-11-21T09:31:00Z",
            }
        ],
        invalid={Reason.MISSING_FIELD: {"family": "support"}},
    )

    key_name = KEY

    family: RouterId
    dimensions: Annotated[int, Field(ge=2, le=MAX_DIMENSIONS)]
    projection: str
    members: Count
    listed: Annotated[tuple[MemberListed, ...], Field(max_length=MOST_LISTED)]
    models: Annotated[tuple[ModelListed, ...], Field(max_length=MAX_MODELS)]
    noise: Annotated[
        tuple[NonNegative, NonNegative],
        Field(description="Variance of a reward, and of a bill's logarithm, around expectations"),
    ]
    observed_at: UtcTime

    @property
    def key(self) -> str:
        """The key of its record."""
        return self.family
