"""List the topics: who writes each, and what headers its records carry."""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as its readers and writers see it.

    Attributes:
        to_service: clients write it and the service reads it; else the other way round.
        cleanup: the topic's policy.
        description: a sentence that describes the topic.
    """

    to_service: bool
    cleanup: Literal["compact", "delete"]
    description: str


TOPICS: Final = {
    "routers": Topic(
        True,
        "compact",
        (
            "A whole router, declared: models, prices, budget. The last record counts; null "
            "removes it."
        ),
    ),
    "requests": Topic(True, "delete", "A prompt, or its context, that wants a model."),
    "costs": Topic(True, "delete", "What a model's call has cost, or its tokens."),
    "rewards": Topic(True, "delete", "How good an answer was."),
    "pools": Topic(
        True,
        "compact",
        "A whole pool, declared: its budgets, its own pool, its members; null removes it.",
    ),
    "leases": Topic(
        True,
        "delete",
        "Reports of members to their pool, and grants of a pool to its members; workers write it.",
    ),
    "kin": Topic(
        True,
        "delete",
        "What members tell their family, and what it tells them; workers write it.",
    ),
    "routes": Topic(False, "delete", "The decision on a request: exactly one, or one dead letter."),
    "lambda": Topic(
        False,
        "compact",
        "The dual variable of a router and the money behind it; the last record counts.",
    ),
    "families": Topic(
        False,
        "compact",
        "A family: its members, how alike they are, what a newcomer starts with.",
    ),
    "alerts": Topic(
        False, "delete", "Drift, a cap that is reached, a budget that is out of reach."
    ),
    "refusals": Topic(False, "delete", "What clients may know of a dead letter; no body."),
    "dlq": Topic(
        False, "delete", "A refused record: its bytes, untouched, and headers that say why."
    ),
}
"""All topics of the service, by their names behind the prefix."""
SOURCES: Final = tuple(name for name, topic in TOPICS.items() if topic.to_service)
"""Topics that the service reads; a state says how much of each it contains."""
