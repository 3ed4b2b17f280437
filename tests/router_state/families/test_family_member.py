"""A member of a family: what it takes over counts as evidence, is taken back, and is never told as
its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from benchmarks.played import Played
from router_state.changes import Outcome
from router_state.config import LIVE, ModelConfig, Price, Prior, RouterConfig
from router_state.errors import InvalidConfig, UnusablePrior
from router_state.events import Redeclared
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_evidence import own_sums
from router_state.families.family_member import Family
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import MemberPrior, Model, Report
from router_state.families.family_sums import LEAST_REPORTED, Sums, bytes_of, sums_of
from router_state.state import portable, restoring, state_pieces

D = 4
PRICES = {"a": Price(0.1, 0.4), "b": Price(1.0, 4.0), "free": Price(0.0, 0.0)}
SEEDS = st.integers(0, 10**6)


def config(name: str | None = "support", *, offset: int = 3, **said: bool) -> RouterConfig:
    """Return the declaration of a router, in a family or none."""
    declared = {} if name is None else {"family": FamilyDeclared(name, **said)}
    models = {one: ModelConfig(price) for one, price in PRICES.items()}
    return RouterConfig(models, None, D, "live", LIVE, capabilities=declared, offset=offset)


def told(n: int, seed: int = 0, *, born: int = 3, models: str = "ab", **fields: Any) -> MemberPrior:
    """Return a prior that others may have told."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in models:
        sides = []
        for _ in range(2):
            X = np.column_stack([rng.normal(size=(30, D - 1)), np.ones(30)])
            sides.append(bytes_of(Sums(X.T @ X, X.T @ rng.random(30))))
        found[name] = Model(sides[0], sides[1])
    return MemberPrior("support", born, n, found, **fields)


def member(engine: Played) -> Family:
    """Return an engine's membership."""
    found = engine.state.having(Family)
    assert found is not None
    return found


def play(engine: Played, count: int, *, first: int = 0, seed: int = 1) -> None:
    """Let requests be decided, billed and judged."""
    rng = np.random.default_rng([seed, first])
    for k in range(first, first + count):
        x = np.append(rng.normal(size=D - 1), 1.0)
        engine.decide(str(k), x, now=float(k))
        engine.settle(str(k), cost_usd=float(rng.lognormal(-7.0)))
        engine.learn(str(k), reward=float(np.clip(0.6 + 0.1 * x[0], 0, 1)))


def restored(engine: Played) -> Played:
    """Return the engine as the next owner of its state has it."""
    pieces = state_pieces.pack_pieces(engine.state)
    return Played(restoring.unpack(pieces.get, dict(engine.state.open_commitments)), engine.records)


@given(SEEDS)
def test_a_member_goes_on_from_its_record_as_if_it_had_never_stopped(seed: int) -> None:
    one, other = Played.start(config()), Played.start(config())
    rng = np.random.default_rng(seed)
    at = n = 0
    for _ in range(4):
        count = int(rng.integers(0, 25))
        for engine in (one, other):
            play(engine, count, first=at)
        at += count
        n += int(rng.integers(1, 3))
        event = told(n, seed + n, models=str(rng.choice(["a", "b", "ab"])), offset=n)
        for engine in (one, other):
            engine.play(event, float(at))
        other = restored(other)
        assert state_pieces.pack_pieces(one.state) == state_pieces.pack_pieces(other.state)
    assert member(one).reported("r", "") == member(other).reported("r", "")


def test_a_prior_is_taken_over_once_and_in_order() -> None:
    engine = Played.start(config())
    play(engine, 10)
    assert engine.play(told(2)).outcome is Outcome.APPLIED
    for late in (told(2, 5), told(1, 5), told(7, born=2), replace_family(told(7))):
        assert engine.play(late).outcome is Outcome.DUPLICATE


@pytest.mark.parametrize("known", [(0.01, 0.05), (0.25, 0.9), (0.0, 0.0)])
def test_a_newcomer_begins_with_its_familys_noise_and_never_with_more_than_its_guess(
    known: tuple[float, float],
) -> None:
    engine, alone = Played.start(config()), Played.start(config())
    engine.play(told(1, noise=known))
    for side in ("rewards", "bills"):
        found, guess = (getattr(one.state.arms, side).noise for one in (engine, alone))
        said = known[side == "bills"]
        assert found == (min(said, guess) if said else guess)
    play(engine, 30)
    before = engine.state.arms.rewards.noise
    engine.play(told(2, noise=known))
    assert engine.state.arms.rewards.noise == before


def replace_family(one: MemberPrior) -> MemberPrior:
    """Return a prior of another family."""
    return MemberPrior("sales", one.born, one.n, one.models)


def test_the_steps_before_a_decision_name_the_prior() -> None:
    engine = Played.start(config())
    engine.play(told(1, offset=17))
    engine.play(told(2, offset=19))
    play(engine, 1)
    assert engine.state.since.led_to(1) == "d3 p17 p19"


def test_what_a_member_took_is_not_told_as_its_own() -> None:
    engine = Played.start(config())
    play(engine, 40)
    before = member(engine).reported("r", "")
    engine.play(told(1))
    after = member(engine).reported("r", "")
    assert before.models.keys() == after.models.keys()
    for name, model in before.models.items():
        for first, second in zip(model.sides, after.models[name].sides, strict=True):
            if not first and not second:
                continue
            a, b = sums_of(first, D), sums_of(second, D)
            np.testing.assert_allclose(a.A, b.A, atol=2e-2)
            np.testing.assert_allclose(a.b, b.b, atol=2e-2)


@pytest.mark.parametrize("after", [config(None, offset=4), config("sales", offset=4)])
def test_a_router_that_leaves_gives_back_what_it_took(after: RouterConfig) -> None:
    engine = Played.start(config())
    play(engine, 40)
    arms = engine.state.arms
    before = [own_sums(arm.rewards, arms.rewards) for arm in arms]
    engine.play(told(1, 1))
    assert own_sums(arms["a"].rewards, arms.rewards).count > before[0].count + 20.0
    engine.play(Redeclared(after), 50.0)
    for arm, sums in zip(arms, before, strict=True):
        found = own_sums(arm.rewards, arms.rewards)
        np.testing.assert_allclose(found.A, sums.A, atol=0.2)
        np.testing.assert_allclose(found.b, sums.b, atol=0.2)


def test_a_declared_prior_is_not_told_as_evidence() -> None:
    declared = config()
    A = np.diag([50.0, 50.0, 50.0, 100.0])
    known = replace(declared.models["a"], prior=Prior(A=A, b=0.5 * A[-1], n_eff=500.0))
    engine = Played.start(replace(declared, models={**declared.models, "a": known}))
    assert member(engine).reported("r", "").models == {}
    play(engine, 30)
    again = restored(engine)
    report = member(again).reported("r", "")
    counts = {m: sums_of(one.rewards, D).count for m, one in report.models.items()}
    assert 25.0 < sum(counts.values()) < 31.0


def test_fewer_than_twenty_requests_leave_no_router() -> None:
    engine = Played.start(config())
    play(engine, int(LEAST_REPORTED) - 1)
    assert member(engine).reported("r", "").models == {}
    play(engine, 2, first=100)
    models = member(engine).reported("r", "").models
    rare = [sums_of(one.rewards, D) for one in models.values() if one.rewards]
    rare = [one for one in rare if one.count < LEAST_REPORTED]
    assert rare
    for one in rare:
        # One direction: the mean context of all that the router has answered.
        assert np.linalg.matrix_rank(one.A, tol=1e-2 * one.count) == 1


def test_a_model_that_becomes_free_forgets_what_its_family_said_of_bills() -> None:
    engine = Played.start(config())
    engine.play(told(1))
    models = {**config().models, "a": ModelConfig(Price(0.0, 0.0))}
    engine.play(Redeclared(replace(config(offset=4), models=models)), 1.0)
    assert member(engine).outside_sums["a"].taken[1] is None
    engine.play(told(2, 3))
    play(engine, 30)


def test_a_model_that_left_for_good_takes_its_sums_along() -> None:
    engine = Played.start(config())
    engine.play(told(1))
    models = {name: one for name, one in config().models.items() if name != "a"}
    engine.play(Redeclared(replace(config(offset=4), models=models)), 1.0)
    engine.forget(before=1e9)
    assert "a" not in member(engine).outside_sums
    assert member(restored(engine)).outside_sums.keys() == {"b"}


def test_what_an_export_took_from_its_family_is_not_told_to_another() -> None:
    engine = Played.start(config())
    play(engine, 60)
    alone = counts(member(engine).reported("r", ""))
    engine.play(told(1))
    data = portable.pack(engine.state, {})
    found = Played.start(replace(config("sales", offset=9), snapshot=data))
    assert member(found).place.born == 9
    assert counts(member(found).reported("copy", "")) == pytest.approx(alone, abs=0.2)
    play(found, 30, first=200)
    more = counts(member(found).reported("copy", ""))
    assert sum(more.values()) == pytest.approx(sum(alone.values()) + 30.0, abs=2.0)


def counts(report: Report) -> dict[str, float]:
    """Return of how many rewards a report is, by model."""
    return {name: sums_of(one.rewards, D).count for name, one in report.models.items()}


@pytest.mark.parametrize("how", ["short", "nan", "indefinite"])
def test_sums_that_can_not_be_change_nothing(how: str) -> None:
    engine = Played.start(config())
    play(engine, 5)
    data = told(1).models["a"].rewards
    bad = {
        "short": data[:-1],
        "nan": np.full(D, np.nan, "<f4").tobytes() + data[4 * D :],
        "indefinite": data[: 8 * D] + b"\xff\x7f" + b"\x01\x80" * (D * (D - 1) // 2 - 1),
    }[how]
    before = state_pieces.pack_pieces(engine.state)
    with pytest.raises(UnusablePrior):
        engine.play(MemberPrior("support", 3, 1, {"a": Model(bad, b"")}))
    assert state_pieces.pack_pieces(engine.state) == before


def test_a_member_that_is_left_out_raises_one_alert() -> None:
    engine = Played.start(config())
    for n in (1, 2):
        engine.play(told(n, aside=True, slope=-0.9, members=4))
    (alert,) = engine.take_alerts()
    assert (alert.kind, alert.evidence["family"]) == ("family_parted", "support")


def test_paper_has_no_families() -> None:
    with pytest.raises(InvalidConfig, match="profile live"):
        replace(config(), profile="paper")


def test_a_decision_says_for_how_much_its_family_counts() -> None:
    engine = Played.start(config())
    engine.play(told(1, models="ab"))
    record = engine.decide("q", np.append(np.zeros(D - 1), 1.0), now=1.0)
    kept = {} if record.call is None else record.call.kept
    assert record.model == "free" or 25.0 < kept["family"] < 35.0


def said(name: str, seed: int, *, models: str = "ab", n: int = 40, **fields: Any) -> Report:
    """Return a member's report."""
    rng = np.random.default_rng(seed)
    found = {}
    for model in models:
        X = np.column_stack([rng.normal(size=(n, D - 1)), np.ones(n)])
        y = X @ np.array([0.1, 0.0, -0.1, 0.6 + 0.1 * (model == "a")]) + 0.2 * rng.normal(size=n)
        found[model] = Model(bytes_of(Sums(X.T @ X, X.T @ y)), b"")
    given: dict[str, Any] = {
        "family": "support",
        "member": name,
        "born": 1,
        "n": 0,
        "d": D,
        "projection": "",
    }
    more: dict[str, Any] = {
        "seen": (2 * n, 0),
        "noise": (0.04, 0.3),
        "names": tuple("abc"),
        "models": found,
    }
    return Report(**{**given, **more, **fields})


def replace_models(report: Report, models: dict[str, Model]) -> Report:
    """Return a report of other models."""
    return structs.replace(report, models=models)


def owner_of(*reports: Report) -> FamilyOwner:
    """Return a family that has heard these and estimated."""
    owner = FamilyOwner("support", lambda piece: None)
    for one in reports:
        owner.take_report(one)
    estimating = owner.estimating()
    estimating.run()
    owner.take(estimating)
    return owner


def test_an_owner_that_starts_again_tells_the_same() -> None:
    one = owner_of(*(said(f"r{k}", k) for k in range(4)))
    two = FamilyOwner("support", one.fresh.get)
    two.d, two.members, two.counted = one.d, one.members, False
    two.sides = one.sides
    two.recount()
    (first,), (second,) = one.priors_for("r0"), two.priors_for("r0")
    for name in "ab":
        a, b = sums_of(first.models[name].rewards, D), sums_of(second.models[name].rewards, D)
        np.testing.assert_allclose(a.A, b.A, rtol=1e-3)


def test_an_older_report_changes_nothing_and_the_last_one_forgets() -> None:
    owner = owner_of(said("r0", 0), said("r1", 1))
    (before,) = owner.priors_for("r0")
    owner.take_report(said("r1", 5, seen=(10, 0)))
    (after,) = owner.priors_for("r0")
    assert before.models == after.models
    owner.take_report(said("r1", 1, left=True, seen=(81, 0)))
    (alone,) = owner.priors_for("r0")
    assert alone.models == {} and alone.members == 0


def test_a_member_that_does_not_give_is_not_counted() -> None:
    owner = owner_of(said("r0", 0), said("r1", 1))
    owner.take_report(said("r1", 1, gives=False, models="", seen=(90, 0)))
    assert owner.priors_for("r0")[0].models == {}
    assert owner.priors_for("r1")[0].models.keys() == {"a", "b"}


def test_a_newcomer_is_told_what_the_others_know() -> None:
    owner = owner_of(said("r0", 0), said("r1", 1, models="b"))
    owner.take_report(said("new", 0, models="", seen=(0, 0), names=("a", "b", "z")))
    assert list(owner.waiting)[-1] == "new"
    (first,) = owner.priors_for("new")
    assert first.models.keys() == {"a", "b"} and first.members == 2


def test_contexts_of_another_projection_are_refused() -> None:
    owner = owner_of(said("r0", 0))
    with pytest.raises(InvalidConfig, match="declare another family"):
        owner.take_report(said("r1", 1, projection="f" * 64))
    assert owner.members.keys() == {"r0"}


def test_reports_during_an_estimate_are_not_lost() -> None:
    owner = owner_of(said("r0", 0), said("r1", 1))
    estimating = owner.estimating()
    owner.take_report(said("r2", 2))
    estimating.run()
    owner.take(estimating)
    assert owner.priors_for("r0")[0].members == 2
    with_all = owner_of(*(said(f"r{k}", k) for k in range(3)))
    with_all.sides = owner.sides
    with_all.recount()
    a = sums_of(owner.priors_for("r0")[0].models["a"].rewards, D).count
    b = sums_of(with_all.priors_for("r0")[0].models["a"].rewards, D).count
    assert a == pytest.approx(b)


def test_much_is_told_in_several_records() -> None:
    names = tuple(f"m{k:04d}" for k in range(2500))
    owner, X = FamilyOwner("support", lambda piece: None), np.eye(D)
    model = Model(bytes_of(Sums(30 * X, X[-1])), b"")
    owner.take_report(said("r1", 1, names=names))
    owner.take_report(replace_models(said("r2", 2, names=names), dict.fromkeys(names, model)))
    found = owner.priors_for("r1")
    assert len(found) > 1
    assert [one.more for one in found] == [True] * (len(found) - 1) + [False]
    assert [one.n for one in found] == list(range(1, len(found) + 1))
