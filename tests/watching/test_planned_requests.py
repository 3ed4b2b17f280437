"""What a view makes of plans: each call's bill once, how far plans went, and what they are
expected to bring."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import CostReported, RewardObserved, RouteDecided
from schemas.verifiers import PlanStep
from tests.watching.dashboard.test_dashboard_folds import bill, label, route, seen, state
from watching.dashboard.verifiers_view import verifiers_of


def planned(request_id: str, *, looks: bool = False) -> RouteDecided:
    """Return a decision for model `b`, whose plan calls `a` first, and another that is only
    looked at."""
    second = {} if not looks else {"verify": "tests", "verdict_usd": 1e-5}
    first: dict[str, Any] = {"verify": "tests", "accept_at": 0.5, "verdict_usd": 1e-5}
    plan = (
        PlanStep(model="a", expected_cost_usd=1e-4, **first),
        PlanStep(model="b", expected_cost_usd=5e-4, probability=0.4, **second),
    )
    told = {"plan": plan, "expected_reward": 0.9, "expected_cost_usd": 3.1e-4}
    return route(request_id, "a").model_copy(
        update={**told, "propensity": 0.5, "first_propensity": 0.8}
    )


def call(request_id: str, attempt: int, usd: float, **more: Any) -> CostReported:
    return bill(request_id, usd).model_copy(update={"attempt": attempt, **more})


def verdict(request_id: str, value: float, **more: Any) -> RewardObserved:
    given = {"router_id": "chat", "request_id": request_id, "verifier": "tests"}
    return RewardObserved.model_validate({**given, "verdict": value, **more})


def test_both_calls_are_paid_for_and_a_plan_that_went_on_counts_as_one_that_did() -> None:
    router = seen(
        ("routes", planned("r-0")),
        ("costs", call("r-0", 0, 1e-4)),
        ("rewards", verdict("r-0", 0.0)),
        ("costs", call("r-0", 1, 6e-4)),
        ("costs", call("r-0", 1, 6e-4)),  # the same once more
        ("rewards", label("r-0", 1.0)),
        ("routes", planned("r-1")),
        ("costs", call("r-1", 0, 1e-4)),
        ("rewards", verdict("r-1", 1.0)),
        ("rewards", label("r-1", 0.5)),
    ).router("chat")
    tally = router.tally
    assert tally.bills.n == tally.labels.n == 2
    assert tally.bills.total == pytest.approx(8e-4 + 2e-5)
    assert {name: one.bills.n for name, one in tally.models.items()} == {"a": 2, "b": 1, "c": 0}
    # The second model's answer was labelled, not the first one's.
    assert tally.models["b"].labels.total == 1.0 and tally.models["a"].labels.total == 0.5
    (found,) = verifiers_of(router)
    assert (found["planned"], found["known"], found["went_on"]) == (2, 2, 1)
    assert found["share"] == 1.0 and found["standing"] is None
    # The best single call is c: 0.8 at 0.01 dollars.
    assert found["gain"] == pytest.approx(2 * (0.9 - 0.9))
    assert found["saved_usd"] == pytest.approx(2 * (1e-2 - 3.1e-4))


def test_a_label_is_of_the_call_that_followed_before_its_bill_comes() -> None:
    router = seen(
        ("routes", planned("r-0")),
        ("costs", call("r-0", 0, 1e-4)),
        ("rewards", verdict("r-0", 0.0)),
        ("rewards", label("r-0", 1.0)),
        ("costs", call("r-0", 1, 6e-4)),
    ).router("chat")
    assert {name: one.labels.n for name, one in router.tally.models.items() if one.labels.n} == {
        "b": 1
    }


def test_a_label_of_higher_rank_is_of_the_call_that_it_names() -> None:
    router = seen(
        ("routes", planned("r-0")),
        ("rewards", label("r-0", 0.9, source="judge").model_copy(update={"attempt": 1})),
        ("rewards", label("r-0", 0.2, source="human").model_copy(update={"attempt": 0})),
        ("rewards", label("r-0", 0.7, source="user").model_copy(update={"attempt": 1})),
    ).router("chat")
    labels = {name: one.labels for name, one in router.tally.models.items() if one.labels.n}
    assert {name: one.total for name, one in labels.items()} == {"a": 0.2}
    assert router.tally.labels.n == 1 and router.tally.labels.total == pytest.approx(0.2)


def test_the_picture_has_the_router_without_plans_where_there_are_plans() -> None:
    told: list[tuple[str, Any]] = []
    for n in range(20):
        one = planned(f"r-{n}") if n % 2 else route(f"r-{n}", "b")
        told += [
            ("routes", one),
            ("costs", bill(f"r-{n}", 5e-4)),
            ("rewards", label(f"r-{n}", 0.9)),
        ]
    picture = seen(*told).router("chat").pareto()
    assert picture.router is not None and picture.alone is not None
    assert picture.alone.cost_usd - picture.router.cost_usd == pytest.approx((1e-2 - 3.1e-4) / 2)
    assert (
        "Plans are expected to earn 0.000 more and to cost $0.00485 less" in picture.beside_alone()
    )
    alone = seen(*[one for at, one in enumerate(told) if at // 3 % 2 == 0]).router("chat").pareto()
    assert alone.alone is None and alone.beside_alone() == ""


EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda n, attempt, usd, revision, status: (
                "costs",
                call(f"r-{n}", attempt, usd, revision=revision, status=status),
            ),
            st.integers(0, 3),
            st.integers(0, 3),
            st.floats(0.0, 1.0),
            st.integers(0, 2),
            st.sampled_from(["ok", "error", None]),
        ),
        st.builds(
            lambda n, value, attempt, revision: (
                "rewards",
                verdict(f"r-{n}", value, attempt=attempt, revision=revision),
            ),
            st.integers(0, 3),
            st.floats(0.0, 1.0),
            st.integers(0, 3),
            st.integers(0, 2),
        ),
        st.builds(
            lambda n, value, revision: ("rewards", label(f"r-{n}", value, revision=revision)),
            st.integers(0, 3),
            st.floats(0.0, 1.0),
            st.integers(0, 2),
        ),
    ),
    max_size=40,
)


@given(EVENTS, st.booleans())
def test_whatever_comes_sums_stay_those_of_what_is_in_force(
    events: list[tuple[str, Any]], looks: bool
) -> None:
    decided = [("routes", planned(f"r-{n}", looks=looks)) for n in range(3)]
    fleet = seen(*decided, *events)
    router = fleet.router("chat")
    requests = [one for n in range(3) if (one := fleet.request("chat", f"r-{n}")) is not None]
    plans = [one.plan for one in requests if one.plan is not None]
    assert len(plans) == 3
    spent = [one.spent_usd for one in plans if one.spent_usd is not None]
    assert router.tally.bills.n == len(spent)
    assert router.tally.bills.total == pytest.approx(sum(spent), abs=1e-9)
    calls = sum(one.bills.n for one in router.tally.models.values())
    assert calls == sum(len(one.bills) for one in plans)
    (found,) = verifiers_of(router)
    went = [one.went_on for one in plans]
    assert found["known"] == sum(one is not None for one in went)
    assert found["went_on"] == sum(one is True for one in went)


def test_what_was_declared_and_never_planned_is_shown_as_well() -> None:
    share = {"value": 0.9, "low": 0.8, "high": 0.95}
    model = {"model": "a", "passes_right": share, "stops_wrong": share, "verdicts": 9, "labels": 4}
    standing = {"verifier": "judge", "usd": 4e-5, "exact": False, "accept_at": 0.5}
    router = seen(("lambda", state(verifiers=[{**standing, "models": [model]}]))).router("chat")
    (found,) = verifiers_of(router)
    assert found["planned"] == 0 and found["standing"]["models"] == [model]
