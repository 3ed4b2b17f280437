"""Judges are calibrated by gold: what is taken off, what is undone, and who is set aside."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.configuration import config_of
from benchmarks.played import Played
from drawing.source_lines import source_lines
from router_state.config import RouterConfig
from router_state.errors import InvalidConfig
from router_state.events import Asked, Judged, Redeclared
from router_state.sources.learned_labels import LearnedLabels
from router_state.sources.measured_sources import MeasuredSources
from router_state.sources.offsets import ModelPairs, offsets
from router_state.sources.pair_sums import PARTS, Moments, Within
from router_state.sources.uninformative import probability
from router_state.state import invariants
from schemas.event import MalformedEvent, decode
from schemas.label_sources import SourceStanding
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import context, freeze, having, thaw

PRICE = {"input_price_per_m": 1.0, "output_price_per_m": 1.0}
MODELS = {"small": PRICE, "large": PRICE}
JUDGES = ("judge-v2", "judge-v1")
SAID = ("human", "human:anna", *JUDGES, "user")


def config(offset: int = 1, **fields: Any) -> RouterConfig:
    calibrate = fields.pop("calibrate", None)
    sources: dict[str, Any] = {"gold": "human", "judges": JUDGES}
    if calibrate is not None:
        sources["calibrate"] = dict.fromkeys(JUDGES, calibrate)
    document = {"router_id": "r", "models": MODELS, "dimensions": 3, "sources": sources, **fields}
    return config_of(decode(RouterDeclared, orjson.dumps(document)), offset=offset, references={})


def engine(**fields: Any) -> Played:
    return Played.start(config(**fields))


def ask(one: Played, name: str, model: str, x: tuple[float, float]) -> None:
    """Let a given model answer: routers that learn otherwise choose alike."""
    one.apply(Asked(name, context(*x), allowed_models=frozenset({model})), 0.0).accepted()


def label(one: Played, name: str, reward: float | None, source: str, revision: int = 0) -> None:
    one.apply(Judged(name, reward, source, 0, revision=revision), 0.0).accepted()


def learned(one: Played) -> list[Any]:
    """Return A and b of all models without their prior."""
    prior, found = one.state.arms.rewards, []
    for arm in one.state.arms:
        ridges = prior.ridges * arm.rewards.decay
        found.append(arm.rewards.A() - np.diag(ridges))
        found.append(arm.rewards.b() - ridges * prior.mean)
    return found


def thawed(one: Played) -> Played:
    """Return a router as it is after a restart."""
    contexts = {name: record.x for name, record in one.records.items() if record.x is not None}
    return thaw(freeze(one), contexts)


def sources(one: Played) -> MeasuredSources:
    return having(one.state, MeasuredSources)


def favours_large(draw: Random, model: str) -> tuple[float, float]:
    """Return gold and the label of a judge that favours one model by 0.2."""
    gold = 0.5 + draw.gauss(0, 0.1)
    return gold, gold + draw.gauss(0, 0.05) + (0.2 if model == "large" else 0.0)


def says_nothing(draw: Random, model: str) -> tuple[float, float]:
    return 0.5 + draw.gauss(0, 0.1), 0.5 + draw.gauss(0, 0.2)


def play(one: Played, judge: Any, *, requests: int, labelled: int, seed: int = 1) -> None:
    """Let all requests be judged, and people label the last ones."""
    draw = Random(seed)
    for number in range(requests):
        name, model = f"r{number}", draw.choice(("small", "large"))
        ask(one, name, model, (draw.gauss(0, 1), draw.gauss(0, 1)))
        gold, said = (min(max(one, 0.0), 1.0) for one in judge(draw, model))
        label(one, name, said, "judge-v2")
        if number >= requests - labelled:
            label(one, name, gold, "human")
    invariants.check(one.state, one.records)


drawn = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(SAID),
        st.none() | st.integers(0, 10),
        st.integers(1, 3),
    ),
    max_size=50,
)
modes = st.lists(st.sampled_from(["off", "offset", "on"]), min_size=1, max_size=3)


@given(drawn, modes, st.booleans())
def test_what_is_taken_off_is_undone_exactly_whatever_came_between(
    events: list[Any], declared: list[str], restarts: bool
) -> None:
    plain = engine(gamma=0.99)
    one = engine(gamma=0.99, calibrate=declared[0])
    for number in range(6):
        for router in (plain, one):
            ask(router, f"r{number}", ("small", "large")[number % 2], (float(number), 1.0))
    for at, (number, source, tenths, revision) in enumerate(events):
        reward = None if tenths is None else tenths / 10.0
        for router in (plain, one):
            label(router, f"r{number}", reward, source, revision)
        if at % 9 == 8:
            mode = declared[at // 9 % len(declared)]
            one.apply(Redeclared(config(at, gamma=0.99, calibrate=mode)), 0.0)
        if restarts and at % 13 == 12:
            one = thawed(one)
        invariants.check(one.state, one.records)
    one.apply(Redeclared(config(99, gamma=0.99, calibrate="off")), 0.0)
    for found, wanted in zip(learned(one), learned(plain), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("profile", ["live", "paper"])
def test_labels_of_the_past_are_corrected_as_well(profile: str) -> None:
    plain, one = engine(profile=profile), engine(profile=profile, calibrate="offset")
    for router in (plain, one):
        play(router, favours_large, requests=200, labelled=40)
    calibration = sources(one).calibration
    large, small = (calibration.labels["judge-v2", model] for model in ("large", "small"))
    assert large.offset == pytest.approx(0.2, abs=0.05)
    assert small.offset == pytest.approx(0.0, abs=0.05)
    # Under `paper` the prior is a ridge around 0, which is the same in both.
    of = (
        learned
        if profile == "live"
        else (lambda router: [a.rewards.b() for a in router.state.arms])
    )
    found, wanted = ([b for b in of(router) if b.ndim == 1] for router in (one, plain))
    for name, after, before in zip(one.state.arms.names, found, wanted, strict=True):
        labels = calibration.labels["judge-v2", name]
        labels.forget(one.state.arms[name].rewards.forgotten)
        np.testing.assert_allclose(after, before - labels.offset * labels.sums[:3], atol=1e-6)


def test_a_judge_that_says_nothing_leaves_gold_alone() -> None:
    alone, one = engine(gamma=1.0), engine(gamma=1.0, calibrate="on")
    play(one, says_nothing, requests=160, labelled=80)
    assert sources(one).calibration.is_aside("judge-v2")
    for name, record in one.records.items():
        assert record.x is not None
        ask(alone, name, record.model, (record.x[0], record.x[1]))
        if record.label is not None and record.label.source == "human":
            label(alone, name, record.label.reward, "human")
    for found, wanted in zip(learned(one), learned(alone), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    # Gold that is withdrawn leaves nothing, either: the judge's label is in force, and not learned.
    gone = next(n for n, r in one.records.items() if r.label and r.label.source == "human")
    for router in (one, alone):
        label(router, gone, None, "human", 1)
    found = one.records[gone].label
    assert found is not None and found.source == "judge-v2"
    for ours, wanted in zip(learned(one), learned(alone), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e-6)


def test_a_judge_that_was_set_aside_counts_again_once_it_is_not_calibrated() -> None:
    plain, one = engine(gamma=1.0), engine(gamma=1.0, calibrate="on")
    for router in (plain, one):
        play(router, says_nothing, requests=160, labelled=80)
    assert sources(one).calibration.is_aside("judge-v2")
    one.apply(Redeclared(config(9, gamma=1.0)), 0.0)
    for found, wanted in zip(learned(one), learned(plain), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("judge", [favours_large, says_nothing])
def test_a_router_goes_on_after_a_restart_as_if_there_was_none(judge: Any) -> None:
    one = engine(calibrate="on")
    play(one, judge, requests=120, labelled=60)
    other = thawed(one)
    for router in (one, other):
        draw = Random(7)
        for number in range(200, 240):
            ask(router, f"r{number}", draw.choice(("small", "large")), (draw.gauss(0, 1), 0.0))
            label(router, f"r{number}", draw.random(), "judge-v2")
            label(router, f"r{number - 190}", draw.random(), "human", 1)
    assert freeze(one) == freeze(other)


def test_decisions_are_those_without_calibration_until_gold_comes() -> None:
    plain, one, draw = engine(sources=None), engine(calibrate="on"), Random(4)
    for number in range(80):
        name, x = f"r{number}", context(draw.gauss(0, 1), draw.gauss(0, 1))
        for router in (plain, one):
            router.apply(Asked(name, x), 0.0).accepted()
        a, b = plain.records[name], one.records[name]
        assert (a.model, a.propensity, a.expected_reward) == (
            b.model,
            b.propensity,
            b.expected_reward,
        )
        said = draw.random()
        for router in (plain, one):
            label(router, name, said, "judge-v2")
    for arm, other in zip(plain.state.arms, one.state.arms, strict=True):
        assert arm.rewards.kept.tobytes() == other.rewards.kept.tobytes()


def test_a_model_or_a_judge_that_leaves_takes_its_labels_along() -> None:
    one = engine(calibrate="offset")
    play(one, favours_large, requests=120, labelled=60)
    sources(one).without("large")
    assert {model for _, model in sources(one).calibration.labels} == {"small"}
    fields = {"sources": {"gold": "human", "judges": ["judge-v1"]}}
    one.apply(Redeclared(config(5, **fields)), 0.0)
    assert not sources(one).calibration.labels
    label(one, "r3", 0.5, "human", 1)
    invariants.check(one.state, one.records)


def test_labels_of_before_the_sums_began_are_revised_as_they_were_learned() -> None:
    plain = engine(sources=None, gamma=1.0)
    one = engine(sources=None, gamma=1.0)
    for router in (plain, one):
        ask(router, "a", "large", (1.0, 0.0))
        label(router, "a", 0.9, "judge-v2")
    one.apply(Redeclared(config(2, gamma=1.0, calibrate="offset")), 0.0)
    plain.apply(Redeclared(config(2, gamma=1.0)), 0.0)
    for router in (plain, one):
        play(router, favours_large, requests=60, labelled=30)
        label(router, "a", 0.4, "human")
    one.apply(Redeclared(config(3, gamma=1.0)), 0.0)
    for found, wanted in zip(learned(one), learned(plain), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_shift_of_all_that_was_learned_is_one_of_the_labels() -> None:
    one, other = (LearnedLabels.empty(3, 0, aside=False) for _ in range(2))
    x = context(0.5, -1.0)
    one.add(x, 0.4, 1.0, 1.0, 0.0)
    other.add(x, 0.7, 1.0, 1.0, 0.0)
    one.shift(0.3)
    np.testing.assert_allclose(one.sums, other.sums)
    assert LearnedLabels.unpack(one.pack(), 3).sums.tobytes() == one.sums.tobytes()


def test_offsets_of_a_favoured_model_are_its_own_and_those_of_few_pairs_are_small() -> None:
    within = Within(60, 0.03, 0.02, 0.02)
    own = offsets(
        {
            "large": ModelPairs(40, 0.8, 0.6, 500.0, 0.8),
            "small": ModelPairs(4, 0.5, 0.5, 50.0, 0.5),
            "new": ModelPairs(0, 0.0, 0.0, 20.0, 0.4),
        },
        within,
        within,
    )
    assert own["large"] == pytest.approx(0.2, abs=0.03)
    assert abs(own["small"]) < 0.05 and abs(own["new"]) < 0.07
    few = offsets({"large": ModelPairs(1, 0.8, 0.6, 500.0, 0.8)}, within, within)
    assert 0.0 < few["large"] < 0.13
    none = {"large": ModelPairs(0, 0.0, 0.0, 0.0, 0.0)}
    assert offsets({}, within, within) == offsets(none, within, within) == {}


def test_pairs_of_thumbs_by_a_judge_of_a_small_scale_move_no_model_much() -> None:
    one, models = Moments(), [Moments() for _ in range(9)]
    pairs = {}
    for number, sums in enumerate(models):
        gold = 10_000 * (number % 3 == 0)
        judge = 4_500 + 35 * gold // 100
        sums.add(judge, gold)
        one.add(judge, gold)
        pairs[f"m{number}"] = ModelPairs(1, judge / 1e4, gold / 1e4, 200.0, 0.57)
    within, whole = Within.of(models), Within.of([one])
    own = offsets(pairs, within, whole)
    assert max(own.values()) - min(own.values()) < 0.1
    # Once it is known what a step of the judge is worth, a pair tells of no favour at all.
    known = offsets(pairs, whole, whole)
    assert max(known.values()) - min(known.values()) < 0.05


levels = st.lists(st.integers(1, 19), min_size=2, max_size=9, unique=True)


@given(levels, st.floats(0.35, 1.0), st.floats(0.0, 1.0), st.data())
def test_a_judge_of_a_narrow_scale_keeps_its_order_of_the_models(
    twentieths: list[int], scale: float, shared: float, data: st.DataObject
) -> None:
    models = {}
    for number, twentieth in enumerate(twentieths):
        gold = twentieth / 20.0
        judge = shared + scale * (gold - shared)
        pairs = data.draw(st.integers(0, 20))
        at = (judge, gold) if pairs else (0.0, 0.0)
        models[f"m{number}"] = ModelPairs(pairs, *at, 100.0, judge)
    within = Within(400, scale**2 * 0.2, scale * 0.2, 0.2)
    own = offsets(models, within, within)
    order = sorted(models, key=lambda name: models[name].mean)
    assert order == sorted(models, key=lambda name: models[name].mean - own.get(name, 0.0))


def test_a_judge_kind_to_all_models_alike_favours_none_of_them() -> None:
    within = Within(20, 0.03, 0.02, 0.02)
    models = {
        "often": ModelPairs(18, 0.8, 0.6, 500.0, 0.8),
        "seldom": ModelPairs(3, 0.7, 0.5, 50.0, 0.7),
        "new": ModelPairs(0, 0.0, 0.0, 20.0, 0.6),
    }
    own = offsets(models, within, within)
    assert max(own.values()) - min(own.values()) < 0.06


def test_a_judge_narrow_within_models_alone_keeps_their_levels() -> None:
    within = Within(300, 0.01, 0.02, 0.05)
    levels = (0.2, 0.4, 0.5, 0.6, 0.8)
    models = {f"m{at}": ModelPairs(60, at, at, 500.0, at) for at in levels}
    assert max(map(abs, offsets(models, within, within).values())) < 0.05


def test_a_narrow_scale_stretches_models_without_a_pair_as_well() -> None:
    within = Within(300, 0.35**2 * 0.2, 0.35 * 0.2, 0.2)
    levels = (0.2, 0.4, 0.5, 0.6, 0.8)
    models = {}
    for gold in levels:
        judge = 0.45 + 0.35 * gold
        pairs = (60, judge, gold) if gold != 0.4 else (0, 0.0, 0.0)
        models[f"m{gold}"] = ModelPairs(*pairs, 500.0, judge)
    own = offsets(models, within, within)
    corrected = [one.mean - own[name] for name, one in models.items()]
    assert corrected == pytest.approx(levels, abs=0.05)


@pytest.mark.parametrize(("rho", "least", "most"), [(0.0, 0.9, 1.0), (0.8, 0.0, 0.01)])
def test_a_judge_says_nothing_where_its_labels_do_not_follow_gold(
    rho: float, least: float, most: float
) -> None:
    numbers, found = np.random.default_rng(3), []
    for _ in range(40):
        sums = Moments()
        for _ in range(60):
            a, b = numbers.standard_normal(2)
            y = rho * a + (1.0 - rho**2) ** 0.5 * b
            sums.add(round(PARTS * (0.5 + 0.1 * y)), round(PARTS * (0.5 + 0.1 * a)))
        found.append(probability(Within.of([sums])))
    assert least <= float(np.median(found)) <= most


@pytest.mark.parametrize(("follows", "expected"), [(1, 0.0), (-1, 1.0), (0, 1.0)])
def test_it_is_known_of_any_number_of_pairs_whether_a_judge_says_anything(
    follows: int, expected: float
) -> None:
    for pairs in (10, 1_000, 10_000_000):
        within = Within(pairs, 0.2, 0.2 * follows, 0.2)
        if (pairs, follows) != (10, 0):  # ten pairs leave it open
            assert probability(within) == pytest.approx(expected, abs=1e-3)


def standing(one: Played) -> tuple[SourceStanding, ...]:
    """Return how sources stand, as it is published."""
    found: Any = sources(one).lambda_fields(0.0)["sources"]
    return tuple(SourceStanding.model_validate_json(orjson.dumps(source)) for source in found)


def test_calibration_is_recommended_from_the_start_unless_something_else_is_declared() -> None:
    one = engine()
    for labelled in (0, 80):
        play(one, favours_large, requests=160, labelled=labelled)
        assert standing(one)[1].advice == "on"
        declare = "declare calibrate: {judge-v2: on} under sources"
        (line,) = (line for line in source_lines(standing(one)) if declare in line)
        assert ("judge-v2 is off by +0." in line) == bool(labelled), line
        one = engine()
    play(one, favours_large, requests=1, labelled=0)
    one.apply(Redeclared(config(4, calibrate="off")), 0.0)
    assert [judge.advice for judge in standing(one)] == [None, None, None]
    assert not any("calibrate" in line for line in source_lines(standing(one)))


def test_what_pairs_recommend_is_shown_and_said() -> None:
    for judge, advice in ((favours_large, "offset"), (says_nothing, "on")):
        one = engine(calibrate="off")
        play(one, judge, requests=160, labelled=80)
        shown = standing(one)
        assert shown[1].advice == advice
        lines = source_lines(shown)
        assert any(f"calibrate: {{judge-v2: {advice}}}" in line for line in lines), lines
        one.apply(Redeclared(config(4, calibrate=advice)), 0.0)
        shown = standing(one)
        assert shown[1].calibrate == advice
        assert bool(shown[1].set_aside) == (advice == "on")
        large = next(model for model in shown[1].models or () if model.model == "large")
        if advice == "offset":
            assert large.taken_off == pytest.approx(0.2, abs=0.05)
            assert "labels of judge-v2 for large count 0." in " ".join(source_lines(shown))
        assert not any("calibrate:" in line for line in source_lines(shown))


def test_declarations_that_can_not_be_are_refused() -> None:
    one = config(calibrate="on")
    assert one.capabilities["sources"].calibrates("judge-v2")
    unknown = {"gold": "human", "judges": ["a"], "calibrate": {"b": "on"}}
    mistyped = {"gold": "human", "judges": ["a"], "calibrate": {"a": "yes"}}
    for wrong in (unknown, mistyped):
        with pytest.raises(MalformedEvent):
            config(sources=wrong)
    with pytest.raises(InvalidConfig):
        config(calibrate="on", profile="paper")
