"""Topic `rewards`: how good the answer to a routed request was.

Key: router_id, raw UTF-8. Version 1. Compatible: new optional fields, new sources.
Not compatible: a new required field, another scale of `reward`.
"""

from datetime import timedelta
from typing import Final

from schemas.event import Event, documented, optional
from schemas.fields import Label, ModelName, RequestId, Revision, UnitInterval, UtcTime
from schemas.reasons import Reason

TOPIC: Final = "rewards"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_AHEAD: Final = timedelta(minutes=5)
"""Longest time that `observed_at` may be ahead of the worker's clock."""


class RewardObserved(Event):
    """Report the quality of one answer, from one source."""

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
        ],
        invalid={
            Reason.MISSING_FIELD: {"router_id": "acme.chat", "request_id": "r-1", "reward": 0.5},
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

    request_id: RequestId
    reward: UnitInterval
    source: Label
    model: ModelName | None = optional(
        "Which model was called, where that is known; absent: the decided one"
    )
    revision: Revision = 0
    observed_at: UtcTime | None = optional(
        "When the answer was judged; absent: the time of the record"
    )
