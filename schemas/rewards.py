"""Topic `rewards`: how good the answer to a routed request was.

Key: router_id, raw UTF-8. Version 1. Compatible: new optional fields, new sources, null.
Not compatible: a new required field, another scale of `reward`.
"""

from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from schemas.event import Event, documented, optional
from schemas.fields import Label, ModelName, RequestId, Revision, UnitInterval, UtcTime, refuse
from schemas.reasons import Reason

TOPIC: Final = "rewards"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_AHEAD: Final = timedelta(minutes=5)
"""Longest time that `observed_at` may be ahead of the worker's clock."""


WHOLE: Final = "\x1f"
"""Begins the name of a whole session where one of a request is wanted, as in the core."""


def subject_of(request_id: str | None, session_id: str | None) -> str:
    """Return the name of what was judged, see `WHOLE`."""
    return request_id or f"{WHOLE}{session_id}"


class RewardObserved(Event):
    """Report the quality of one answer, or of a whole session, from one source."""

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "reward": 0.85,
                "source": "judge",
                "observed_at": "2026-11-21T09:30:05.250Z",
            },
            {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "reward": 1,
                "source": "human",
                "revision": 1,
            },
            {"router_id": "acme.chat", "session_id": "s-17", "reward": 1, "source": "user"},
            {
                "router_id": "acme.chat",
                "request_id": "r-2",
                "reward": None,
                "source": "human:anna",
                "revision": 1,
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {"router_id": "acme.chat", "reward": 0.5, "source": "judge"},
            Reason.REWARD_OUT_OF_RANGE: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "reward": 1.5,
                "source": "judge",
            },
            Reason.INVALID_FIELD: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "reward": 0.5,
                "source": "judge",
                "observed_at": "yesterday",
            },
        },
    )

    request_id: RequestId | None = optional("The judged answer; absent: a whole session")
    session_id: Label | None = optional(
        "The conversation that was judged, where no request_id says which answer: each of its "
        "requests so far gets the reward, except for those that have one of their own"
    )
    reward: Annotated[
        UnitInterval | None,
        Field(
            description="Quality; null: what the source said before is withdrawn, as if it had "
            "never come"
        ),
    ]
    source: Label
    model: ModelName | None = optional(
        "Which model was called, where that is known; absent: the decided one"
    )
    revision: Revision = 0
    observed_at: UtcTime | None = optional(
        "When the answer was judged; absent: the time of the record"
    )

    @model_validator(mode="after")
    def _something_was_judged(self) -> Self:
        if self.request_id is None and self.session_id is None:
            raise refuse(Reason.MISSING_FIELD, "the reward has neither request_id nor session_id")
        return self

    @model_validator(mode="after")
    def _a_withdrawal_is_a_revision(self) -> Self:
        if self.reward is None and self.revision < 1:
            raise refuse(
                Reason.INVALID_FIELD,
                "a withdrawal (reward: null) needs a revision above the one that it withdraws",
            )
        return self

    @property
    def subject(self) -> str:
        """Return what was judged: a request, or a session behind a character that no id has."""
        return subject_of(self.request_id, self.session_id)
