"""Topic `rewards`: how good the answer to a routed request was, and verifiers' verdicts on answers.

Key: router_id, raw UTF-8. Version 1. Compatible: new optional fields, new sources, null.
Not compatible: a new required field, another scale of `reward`.
"""

from datetime import timedelta
from typing import Final, Self

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.event import Event, documented, optional
from schemas.fields import Label, ModelName, RequestId, Revision, UnitInterval, UtcTime, refuse
from schemas.reasons import Reason
from schemas.verifiers import Attempt

TOPIC: Final = "rewards"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_AHEAD: Final = timedelta(minutes=5)
"""Longest time that `observed_at` may be ahead of the worker's clock."""


WHOLE: Final = "\x1f"
"""First character of a session's name where a request's name is expected; the same as in the
core."""


def subject_of(request_id: str | None, session_id: str | None) -> str:
    """Return the name of what was judged, see `WHOLE`."""
    return request_id or f"{WHOLE}{session_id}"


class RewardObserved(Event):
    """Report the quality of one answer, or of a whole session, from one source; or a verifier's
    verdict on one answer, which is no reward.
    """

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
                "router_id": "acme.code",
                "request_id": "r-5",
                "attempt": 0,
                "verifier": "tests",
                "verdict": 0,
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
            Reason.VERDICT_OUT_OF_RANGE: {
                "router_id": "acme.code",
                "request_id": "r-5",
                "verifier": "tests",
                "verdict": 2,
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
    reward: UnitInterval | None = optional(
        "Absent only of a verdict; null: what the source said before is withdrawn, as if it had "
        "never come"
    )
    source: Label | None = optional("Who judged; absent only of a verdict")
    cant_tell: bool | None = optional(
        "True beside a null reward: the person has seen the answer and can't tell; nobody is asked "
        "about it again"
    )
    model: ModelName | None = optional(
        "Which model was called, where that is known; absent: the decided one"
    )
    attempt: Attempt | None = optional(
        "Which call of the request's plan it is of, from 0; absent: the last one of a reward, the "
        "first one of a verdict"
    )
    verifier: Label | None = optional("Whose verdict it is, in place of reward and source")
    verdict: UnitInterval | None = optional("What a verifier says of the answer; never a reward")
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
    def _reward_or_verdict(self) -> Self:
        if self.verifier is None and self.verdict is None:
            said = getattr(self, "model_fields_set", ())
            if self.source is None or (self.reward is None and "reward" not in said):
                name = "reward" if self.source is not None else "source"
                null = name in said
                reason = Reason.INVALID_FIELD if null else Reason.MISSING_FIELD
                raise refuse(reason, f"{name} is {'null' if null else 'missing'}")
            if self.reward is None and self.revision < 1:
                raise refuse(
                    Reason.INVALID_FIELD,
                    "reward is null, which withdraws a label of a lower revision: say a revision "
                    "of 1 or more",
                )
            if self.cant_tell and self.reward is not None:
                raise refuse(Reason.INVALID_FIELD, "the event says cant_tell beside a reward")
        elif self.verifier is None or self.verdict is None or self.request_id is None:
            raise refuse(Reason.MISSING_FIELD, "a verdict needs request_id, verifier and verdict")
        elif self.reward is not None:
            raise refuse(
                Reason.INVALID_FIELD, "the event has a verdict and a reward: send each by itself"
            )
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        found: dict[str, object] = write(self)
        # Null says something here.
        return found | {"reward": None} if self.reward is None and self.source else found

    @property
    def subject(self) -> str:
        """Return what was judged: a request, or a session behind a character that no id has."""
        return subject_of(self.request_id, self.session_id)
