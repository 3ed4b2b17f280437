"""What people are asked to label: when it is open, the link to its answer, and what is sent."""

from __future__ import annotations

import pytest

from doors.console.wanted_labels import Labelling, Wanted, WantedLabels
from schemas import RewardObserved, RouteDecided
from schemas.label_asking import LabelsWanted
from schemas.label_sources import Sources
from tests.watching.dashboard.test_dashboard_folds import route

HUMAN = Labelling()


def said(source: str, reward: float | None, revision: int = 0, **more: bool) -> RewardObserved:
    return RewardObserved(
        router_id="chat",
        request_id="a",
        reward=reward,
        source=source,
        revision=revision,
        **more,
    )


def asked(request_id: str, at: float = 0.0) -> RouteDecided:
    decided = route(request_id)
    later = decided.decided_at.fromtimestamp(at, decided.decided_at.tzinfo)
    return decided.model_copy(update={"label_wanted": True, "decided_at": later})


def test_a_request_is_open_until_a_person_labels_it_or_cannot_tell() -> None:
    one = Wanted("chat", "a", "m", 0.0)
    for event, is_open in (
        (said("judge", 0.5), True),
        (said("humans", 0.5), True),
        (said("human:anna", 0.5), False),
        (said("human:anna", None, 1), True),
        (said("human", None, 1, cant_tell=True), False),
        (said("human", None, 2), True),
        (said("human:anna", 0.5, 1), True),
    ):
        one.take(event)
        assert one.is_open(HUMAN) == is_open, event


def test_each_label_of_a_person_replaces_the_one_before() -> None:
    one, revisions = Wanted("chat", "a", "m", 0.0), []
    for reward, cannot in ((None, True), (0.5, False), (None, False), (1.0, False)):
        event = one.label("human:anna", reward, cant_tell=cannot)
        assert one.take(event)
        assert not one.take(event)
        revisions.append(event.revision)
    assert revisions == [1, 2, 3, 4]
    assert one.label("human:ben", 0.5).revision == 0


@pytest.mark.parametrize(
    ("request_id", "link"),
    [
        ("7f3c", "https://a.test/x/7f3c?b=1"),
        ("a/b?c#d&e%20 ü", "https://a.test/x/a%2Fb%3Fc%23d%26e%2520%20%C3%BC?b=1"),
        ('"><script>', "https://a.test/x/%22%3E%3Cscript%3E?b=1"),
        ("..", None),
        (".", None),
    ],
)
def test_an_id_is_escaped_in_the_link_to_its_answer(request_id: str, link: str | None) -> None:
    found = Labelling(url="https://a.test/x/{request_id}?b=1")
    assert found.link(request_id) == link
    assert Labelling().link(request_id) is None


def test_a_declaration_says_whose_labels_count_and_in_how_many_steps() -> None:
    declared = route("a")

    class Declared:
        sources = Sources(gold="expert")
        labels = LabelsWanted(want=5, per="day", steps=3)
        label_url = None

    found = Labelling.of(Declared())
    assert found == Labelling("expert", 3, None, True)
    assert found.rewards == [0.0, 0.5, 1.0]
    assert found.source("anna") == "expert:anna"
    assert found.source(None) == "expert"
    assert declared.label_wanted is None


def test_the_newest_requests_that_are_asked_about_are_kept() -> None:
    known = WantedLabels(most=2)
    assert not known.add(route("not asked"))
    for number in range(3):
        assert known.add(asked(f"r{number}", at=float(number)))
    assert not known.add(asked("r2"))
    assert [one.request_id for one in known.open(HUMAN, since=0.0)] == ["r2", "r1"]
    assert [one.request_id for one in known.open(HUMAN, since=2.0)] == ["r2"]
    assert not known.take(said("human", 0.5))
    assert known.get("r0") is None
