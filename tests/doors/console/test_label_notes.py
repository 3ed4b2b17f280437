"""Which labels count, as `pbstream explain` says it."""

from __future__ import annotations

from typing import Any

from doors.console.label_notes import REPEATED, calibration_lines, label_notes
from schemas import RewardObserved
from schemas.label_sources import Sources
from tests.watching.dashboard.test_dashboard_folds import state

SOURCES = Sources(gold="human", judges=("judge-v2",))


def label(source: str, reward: float | None, revision: int = 0) -> RewardObserved:
    return RewardObserved(
        router_id="r", request_id="a", reward=reward, source=source, revision=revision
    )


def told(*events: RewardObserved) -> tuple[list[str], str]:
    return label_notes(events, lambda source: 0, SOURCES)


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


def measured(model: str, taken_off: float | None) -> dict[str, Any]:
    offset = {"value": taken_off or 0.0, "low": -1.0, "high": 1.0}
    return {"model": model, "pairs": 40, "offset": offset, "taken_off": taken_off}


def test_what_is_made_of_a_judges_labels_is_told_for_the_model_that_answered() -> None:
    models = [measured("large", 0.12), measured("small", -0.05), measured("other", None)]
    judge = {"source": "judge-v2", "gold": False, "calibrate": "on", "models": models}
    router, mute = state(sources=[judge]), state(sources=[judge | {"set_aside": True}])
    labels = [label("judge-v2", 0.9)]
    assert calibration_lines(labels, "large", router) == [
        "a label by judge-v2 of large is learned as 0.12 less, by its pairs with gold"
    ]
    assert "0.05 more" in calibration_lines(labels, "small", router)[0]
    assert calibration_lines(labels, "other", router) == []
    assert calibration_lines([label("human:anna", 0.9)], "large", router) == []
    assert calibration_lines([label("judge-v2", None, 1)], "large", router) == []
    assert "not learned" in calibration_lines(labels, "large", mute)[0]
