"""The books of a player: which requests still go out, which decisions they wait for, which feedback
is due.
"""

from __future__ import annotations

import numpy as np
import pytest

from studies.simulate.cases import Case
from studies.simulate.player_ledger import Ledger, Sent
from studies.simulate.scenario import Scenario
from studies.simulate.simulation import Outcomes
from studies.simulate.world import World

MODELS = {"m": (0.9, 0.01)}


def case(index: int) -> Case:
    return Case(
        index, f"r-{index}", np.ones(1), float(index), None, None, MODELS, "m", 1.0, 0.01, 1, 0.9, 2
    )


def ledger(sent: Sent | None = None, **scenario: object) -> Ledger:
    world = World(
        Scenario.model_validate(scenario),
        requests=10,
        index_of={},
        models=set(MODELS),
        declared=set(MODELS),
    )
    return Ledger(world, Outcomes(), sent or Sent())


def due(books: Ledger) -> list[tuple[str, str]]:
    return [(found.topic, found.request_id) for found in books.due()]


def test_feedback_is_due_after_as_many_decisions_as_in_history() -> None:
    books = ledger()
    assert all(books.submit(f"r-{index}", case(index), 0) for index in range(3))
    found = []
    for index in range(3):
        books.answer(f"r-{index}", "m")
        found.append(due(books))
    assert found == [[], [("costs", "r-0")], [("rewards", "r-0"), ("costs", "r-1")]]
    assert len(list(books.due(everything=True))) == 3


def test_a_decision_read_before_its_request_comes_up_is_not_waited_for() -> None:
    sent = Sent()
    for index in range(3):
        sent.add("requests", f"r-{index}")
    books = ledger(sent)
    for index in range(3):
        books.answer(f"r-{index}", None if index == 2 else "m")
    assert books.decided == 0
    assert not any(books.submit(f"r-{index}", case(index), 0) for index in range(3))
    assert (books.decided, books.refused, books.undecided) == (3, 1, 0)
    assert books.submit("r-3", case(3), 0) and books.undecided == 1


def test_feedback_that_was_sent_is_not_due_again_but_its_second_copy_is() -> None:
    sent = Sent()
    sent.add("costs", "r-0")
    books = ledger(sent, events=[{"kind": "duplicate", "what": "costs", "share": 1.0}])
    books.submit("r-0", case(0), 0)
    books.answer("r-0", "m")
    assert [found.topic for found in books.due(everything=True)] == ["costs", "rewards"]


def test_answers_given_again_and_to_strangers_change_nothing() -> None:
    books = ledger()
    books.submit("r-0", case(0), 0)
    for request_id in ("r-0", "r-0", "stranger"):
        books.answer(request_id, "m")
    assert books.decided == 1


@pytest.mark.parametrize("what", ["costs", "rewards"])
def test_feedback_that_is_lost_is_never_due(what: str) -> None:
    books = ledger(events=[{"kind": "lose", "what": what, "share": 1.0}])
    books.submit("r-0", case(0), 0)
    books.answer("r-0", "m")
    assert {found.topic for found in books.due(everything=True)} == {"costs", "rewards"} - {what}
