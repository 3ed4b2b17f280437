"""Which labels count, as `pbstream explain` says it."""

from __future__ import annotations

from doors.console.labels_told import REPEATED, labels_told
from schemas import RewardObserved
from schemas.label_sources import Sources

SOURCES = Sources(gold="human", judges=("judge-v2",))


def label(source: str, reward: float | None, revision: int = 0) -> RewardObserved:
    return RewardObserved(
        router_id="r", request_id="a", reward=reward, source=source, revision=revision
    )


def told(*events: RewardObserved) -> tuple[list[str], str]:
    return labels_told(events, lambda source: 0, SOURCES)


def test_gold_counts_and_the_others_are_kept() -> None:
    notes, mean = told(
        label("user", 0.1),
        label("judge-v2", 0.9),
        label("human:anna", 0.2),
        label("judge-v2", 0.8, 1),
        label("human:anna", 0.3),
    )
    assert notes == ["", "", "", " (kept: that by human:anna counts)", REPEATED]
    assert mean == ""


def test_the_mean_of_people_is_told_and_how_far_they_part() -> None:
    events = [label("human:anna", 0.2), label("human:ben", 0.8), label("human:carla", 0.5)]
    notes, mean = told(*events)
    assert notes == ["", "", ""]
    assert mean == "3 people: their mean of 0.5 counts, they part by up to 0.6"
    assert told(*events, label("human:ben", None, 1), label("human:anna", None, 1))[1] == ""
