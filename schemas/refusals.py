"""Topic `refusals`: what clients may know of a dead letter, without the body, which may hold a
prompt.

Key: router_id, raw UTF-8. Version 1. Compatible: new optional fields, new reasons.
Not compatible: a missing field; anything of the refused event's body.
"""

from typing import Annotated, Final

from pydantic import Field

from schemas.event import Event, documented, optional
from schemas.fields import Count, Label, RequestId
from schemas.reasons import Reason

TOPIC: Final = "refusals"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""


class EventRefused(Event):
    """Announce the dead letter of an event, and its reason. An event whose router cannot be read is
    not announced.
    """

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "topic": "requests",
                "partition": 3,
                "offset": 1042,
                "reason": "no_affordable_model",
                "message": "no allowed model costs at most 1e-06 dollars per 1k tokens",
            },
            {
                "router_id": "acme.chat",
                "topic": "costs",
                "partition": 3,
                "offset": 7,
                "reason": "missing_field",
                "message": "request_id is missing",
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "reason": "cap_reached",
            },
            Reason.INVALID_FIELD: {
                "router_id": "acme.chat",
                "topic": "requests",
                "partition": 0,
                "offset": 0,
                "reason": "",
                "message": "",
            },
        },
    )

    request_id: RequestId | None = optional("Absent where the event has none that can be read")
    topic: Label = Field(
        description=(
            "Where the event was: `requests`, `costs`, `rewards` or `routers`, without the prefix"
        )
    )
    partition: Count = Field(description="Where it was read: the partition")
    offset: Count = Field(description="Where it was read: the offset on that partition")
    reason: Label = Field(description="A code of `pb.reason`")
    message: Annotated[
        str,
        Field(
            max_length=500,
            description="Says what is wrong and what is right; quotes no text of the event",
        ),
    ]
