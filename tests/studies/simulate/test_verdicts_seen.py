"""What verdicts mean, as a history tells: the numbers that a router shares with its family."""

from __future__ import annotations

import numpy as np
import pytest

from agents.members.kin_notes import brought_of
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import Model, Report
from router_state.families.family_sums import Sums
from router_state.shared_numbers import Numbers, numbers_of
from schemas.quick import Bill, Reward
from schemas.routers import RouterDeclared
from studies.history.happened import Billed, Declared, Happened, Rewarded
from studies.simulate.cases import Case
from studies.simulate.fit_family import fit_family
from studies.simulate.verdicts_seen import VerdictsSeen

D, RIGHT = 3, 0.6
RANKS = ("judge", "human")


def event(k: int, **said: object) -> Rewarded:
    if "reward" in said:
        said = {"source": "judge", **said}
    return Rewarded("a", k, float(k), Reward(router_id="a", request_id=f"q{k}", **said))


def history(
    count: int, *, verdicts_late: bool = False, revision: int = 0, source: str = "judge"
) -> tuple[list[Happened], list[Case]]:
    """Return requests whose verifier passes .9 of the right answers, and .2 of the wrong ones."""
    rng = np.random.default_rng(7)
    declared = RouterDeclared.model_validate(
        {
            "router_id": "a",
            "models": {},
            "verifiers": {"judge": {"usd": 0}, "tests": {"usd": 0, "exact": True}},
        }
    )
    happened: list[Happened] = [Declared("a", 0, 0.0, declared)]
    cases = []
    for k in range(count):
        right = float(rng.random() < RIGHT)
        passes = float(rng.random() < (0.9 if right else 0.2))
        both = [
            event(k, reward=right, source=source, revision=revision),
            event(k, verifier="judge", verdict=passes, attempt=0, revision=revision),
        ]
        happened += both if verdicts_late else both[::-1]
        x = np.append(rng.normal(size=D - 1), 1.0)
        cases.append(Case(k, f"q{k}", x, float(k), None, None, {}, f"m{k % 2}", 1.0, reward=right))
    return happened, cases


def numbers(happened: list[Happened], cases: list[Case]) -> dict[str, Numbers]:
    """Return the numbers of the judge by model."""
    seen = VerdictsSeen(RANKS.index)
    list(seen.through(happened))
    list(seen.cases(cases))
    n = float(len(cases))
    sums = Sums(n * np.eye(D), n * RIGHT * np.eye(D)[-1])
    found = seen.numbers(("m0", "m1"), dict.fromkeys(("m0", "m1"), sums), D, 0.2)
    assert {name for one in found.values() for name in one} <= {"attempts:judge"}
    return {model: numbers_of(one["attempts:judge"]) for model, one in found.items()}


@pytest.mark.parametrize("late", [False, True])
def test_a_history_tells_how_far_a_verdict_moves_what_is_believed(late: bool) -> None:
    found = numbers(*history(600, verdicts_late=late))
    # In units of half a logit.
    expected = 2.0 * np.log([0.1 / 0.8, 0.9 / 0.2])
    for one in found.values():
        np.testing.assert_allclose(one.means[:2], expected, atol=1.2)


def test_of_few_labels_nothing_is_told() -> None:
    found = numbers(*history(12))
    assert all(one.precision[:2].sum() == 0.0 for one in found.values())


def test_labels_of_second_calls_say_nothing_of_first_answers() -> None:
    happened, cases = history(600)
    before = numbers(happened, cases)
    for k in range(0, 600, 3):
        second = Bill(router_id="a", request_id=f"q{k}", cost_usd=0.1, attempt=1)
        happened += [Billed("a", k, float(k), second), event(k, reward=0.0)]
        happened.append(event(k, reward=0.0, attempt=1))
    after = numbers(happened, cases)
    for name, one in before.items():
        np.testing.assert_array_equal(one.means, after[name].means)


def test_verdicts_and_labels_count_by_revision_and_rank_whatever_came_last() -> None:
    happened, cases = history(600)
    before = numbers(happened, cases)
    first = [event(k, verifier="judge", verdict=0.0) for k in range(0, 600, 3)]
    last = [event(k, verifier="judge", verdict=1.0) for k in range(0, 600, 5)]
    last += [event(k, reward=0.0, source="judge") for k in range(0, 600, 4)]
    declared, *told = history(600, revision=1, source="human")[0]
    after = numbers([declared, *first, *told, *last], cases)
    for name, one in before.items():
        np.testing.assert_array_equal(one.means, after[name].means)


def test_a_family_of_histories_tells_what_verdicts_mean() -> None:
    happened, cases = history(600)
    seen = VerdictsSeen(RANKS.index)
    list(seen.through(happened))
    list(seen.cases(cases))
    shared = seen.numbers(("m0", "m1"), {}, D, 0.2)
    models = {name: Model(shared=one) for name, one in shared.items()}
    report = Report("f", "a", 0, 0, D, "", seen=(600, 0), names=("m0", "m1"), models=models)
    known = fit_family("f", [report], projection="", now=0.0)
    assert all(one.shared and set(one.shared) == {"attempts:judge"} for one in known.models)

    owner = FamilyOwner("g", lambda piece: None)
    owner.bring(brought_of(known))
    owner.take_report(Report("g", "new", 1, 0, D, "", names=("m0", "m1")))
    (told,) = owner.priors_for("new")
    for name in ("m0", "m1"):
        one = numbers_of(told.models[name].shared["attempts:judge"])
        np.testing.assert_allclose(
            one.means, numbers_of(shared[name]["attempts:judge"]).means, atol=1e-3
        )
        # One member is believed as if members differed by half a logit.
        assert (one.precision[:2] < 1.0).all()
