"""Budgets of labels: how a router declares one, and the labels that were asked for and given."""

from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from schemas.event import Content, optional
from schemas.fields import Count, ModelName, UtcTime, refuse
from schemas.reasons import Reason

REQUEST: Final = "{request_id}"
"""Stands in an address of answers for the request's id."""
MOST_WANTED = 100_000
"""Most labels of a period: no team reads more."""
MOST_STEPS = 10
"""Most answers that a person chooses from: each has a key of the keyboard."""
DEFAULT_STEPS: Final = 5
"""Answers that a person chooses from, where the router does not say: 0, 0.25, 0.5, 0.75 and 1."""


def _address(text: str) -> str:
    try:
        found = urlsplit(text)
        host = found.hostname
    except ValueError:
        raise refuse(Reason.INVALID_FIELD, "is not an address") from None
    if found.scheme not in ("http", "https") or not host:
        raise refuse(Reason.INVALID_FIELD, "is not an address that begins with https:// or http://")
    if not text.isprintable() or " " in text:
        raise refuse(Reason.INVALID_FIELD, "has blanks or characters that cannot be printed")
    if text.count(REQUEST) != 1 or REQUEST in found.netloc:
        raise refuse(Reason.INVALID_FIELD, "does not have {request_id} once, after the host")
    return text


LabelUrl = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_address)]
"""An address with {request_id} in it, once and after the host, so that no id leads elsewhere."""


class LabelsWanted(Content):
    """Say how many labels people can give."""

    want: Annotated[
        int,
        Field(ge=1, le=MOST_WANTED, description="Labels that people are asked for in a period"),
    ]
    per: Annotated[
        Literal["hour", "day", "week"],
        Field(description="The period, in UTC: days begin at midnight, weeks on Monday"),
    ]
    steps: Annotated[int, Field(ge=2, le=MOST_STEPS)] | None = optional(
        "Answers from 0 to 1 that a person chooses from; absent: 5"
    )


class ModelAsked(Content):
    """Say how often people were asked about a model's answers."""

    model: ModelName
    asked: Annotated[Count, Field(description="Labels that were asked for, so far")]
    answered: Annotated[Count, Field(description="How many of those people gave")]
    unasked: Annotated[Count, Field(description="Labels of people that came by themselves")]


class LabelsStanding(Content):
    """Say how a budget of labels stands."""

    want: Count
    per: Literal["hour", "day", "week"]
    begins: UtcTime | None = optional("The begin of the period; absent: no decision yet")
    asked: Count | None = optional("Labels that were asked for in the period")
    decided: Count | None = optional("Decisions of the period")
    models: tuple[ModelAsked, ...] | None = optional("By model, the 64 that were asked about most")
