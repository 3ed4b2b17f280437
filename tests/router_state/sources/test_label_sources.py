"""Sources of labels: what is kept, what counts, what is undone, and what is measured."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.configuration import config_of, declaration_of
from agents.publishing.published_values import alert_raised, lambda_value
from benchmarks.played import Played
from drawing import alert_words
from drawing.source_lines import source_lines
from router_state.changes import Outcome
from router_state.config import RouterConfig
from router_state.events import Asked, Judged, Redeclared
from router_state.instants import utc
from router_state.learning import intervals
from router_state.sources.measured_sources import MeasuredSources
from router_state.sources.parting import Cell
from router_state.state import invariants
from schemas.event import MalformedEvent, decode, encode
from schemas.lambdas import LambdaUpdated
from schemas.quick import Reward, read
from schemas.rewards import RewardObserved
from schemas.routers import RouterDeclared
from streams.service.router_metrics import RouterMetrics
from tests.router_state.core_reference import context, freeze, having, thaw

MODELS = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4},
    "large": {"input_price_per_m": 5.0, "output_price_per_m": 20.0},
}
SOURCES = {"gold": "human", "judges": ["judge-v2", "judge-v1"]}
SAID = ("human", "human:anna", "human:ben", "judge-v2", "judge-v1", "user", "other")


def config(offset: int = 1, **fields: Any) -> RouterConfig:
    document = {"router_id": "r", "models": MODELS, "dimensions": 4, **fields}
    return config_of(decode(RouterDeclared, orjson.dumps(document)), offset=offset, references={})


def engine(**fields: Any) -> Played:
    return Played.start(config(**{"sources": SOURCES, **fields}))


def ask(one: Played, request_id: str, x: Any = (1.0, 0.0, 0.0)) -> str:
    decision = one.apply(Asked(request_id, context(*x)), 0.0).decision
    assert decision is not None
    return decision.model


def label(
    one: Played,
    request_id: str,
    reward: float | None,
    source: str,
    revision: int = 0,
    rank: int = 0,
) -> Outcome:
    event = Judged(request_id, reward, source, rank, revision=revision)
    return one.apply(event, 0.0).accepted().outcome


def in_force(one: Played, request_id: str) -> tuple[float, str] | None:
    found = one.records[request_id].label
    return None if found is None else (found.reward, found.source)


def sources(one: Played) -> MeasuredSources:
    return having(one.state, MeasuredSources)


def standing(one: Played) -> list[dict[str, Any]]:
    found: Any = sources(one).lambda_fields(0.0)["sources"]
    return list(found)


def learned(one: Played) -> list[Any]:
    """Return A and b of all models, what has been forgotten since taken out."""
    return [(arm.rewards.A(), arm.rewards.b()) for arm in one.state.arms]


def test_gold_outranks_judges_and_these_all_others_whatever_their_ranks() -> None:
    one = engine()
    ask(one, "a")
    for reward, source, rank in ((0.1, "other", 9), (0.2, "judge-v1", 0), (0.3, "judge-v2", 0)):
        label(one, "a", reward, source, rank=rank)
        assert in_force(one, "a") == (reward, source)
    label(one, "a", 0.4, "human:anna")
    label(one, "a", 0.5, "judge-v2", revision=1)
    assert in_force(one, "a") == (0.4, "human:anna")
    assert one.state.rewards_applied == 1
    invariants.check(one.state, one.records)


def test_the_mean_of_two_people_counts_and_how_far_they_part_is_shown() -> None:
    one = engine()
    ask(one, "a")
    label(one, "a", 0.2, "human:anna")
    label(one, "a", 0.8, "human:ben")
    assert in_force(one, "a") == (0.5, "human:anna")
    assert standing(one)[0] == {
        "source": "human",
        "gold": True,
        "double_labels": 1,
        "apart": 0.6,
    }
    label(one, "a", None, "human:anna", revision=1)
    assert in_force(one, "a") == (0.8, "human:ben")
    assert standing(one)[0] == {"source": "human", "gold": True}


@pytest.mark.parametrize("profile", ["live", "paper"])
@pytest.mark.parametrize("declared", [SOURCES, None])
def test_a_withdrawn_label_is_undone(profile: str, declared: Any) -> None:
    one, other = (engine(sources=declared, profile=profile) for _ in range(2))
    draw = Random(3)
    for number in range(12):
        x = (draw.random(), draw.random(), draw.random())
        ask(one, f"r{number}", x), ask(other, f"r{number}", x)
    for number in range(11):
        reward = draw.random()
        label(one, f"r{number}", reward, "human")
        label(other, f"r{number}", reward, "human")
    called = one.records["r11"].model
    arm, twin = one.state.arms.find(called), other.state.arms.find(called)
    assert arm is not None and twin is not None
    label(one, "r11", 0.9, "human")
    t, gamma = one.state.t, one.state.config.knobs.gamma
    assert label(one, "r11", None, "human", revision=2) is Outcome.REVISED
    assert in_force(one, "r11") is None
    assert one.state.rewards_applied == 11
    # The clock has moved on, and the prior has not been estimated again.
    arm.rewards.forget(t, gamma, 1.0)
    twin.rewards.forget(t, gamma, 1.0)
    np.testing.assert_allclose(arm.rewards.b(), twin.rewards.b(), atol=1e-6)
    np.testing.assert_allclose(arm.rewards.A(), twin.rewards.A(), atol=1e-6)
    invariants.check(one.state, one.records)


@pytest.mark.parametrize("declared", [SOURCES, None])
def test_a_withdrawal_again_or_a_late_label_below_it_changes_nothing(declared: Any) -> None:
    one = engine(sources=declared)
    ask(one, "a"), ask(one, "b")
    label(one, "a", 0.7, "human")
    label(one, "a", None, "human", revision=2)
    label(one, "b", None, "human", revision=2)
    before = freeze(one)
    for request_id in ("a", "b"):
        for reward, revision in ((None, 2), (None, 1), (0.7, 0), (0.9, 1), (0.9, 2)):
            assert label(one, request_id, reward, "human", revision) is Outcome.DUPLICATE
    assert freeze(one) == before
    assert label(one, "a", 0.6, "human", revision=3) is Outcome.APPLIED
    assert label(one, "b", 0.4, "judge") is Outcome.APPLIED
    assert (in_force(one, "a"), in_force(one, "b")) == ((0.6, "human"), (0.4, "judge"))


def test_the_judges_label_counts_again_once_gold_is_withdrawn() -> None:
    one = engine()
    ask(one, "a")
    label(one, "a", 0.3, "human")
    label(one, "a", 0.6, "judge-v2")
    label(one, "a", None, "human", revision=1)
    assert in_force(one, "a") == (0.6, "judge-v2")
    assert standing(one)[1]["pairs"] == 0


drawn = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(SAID),
        st.none() | st.integers(0, 10),
        st.integers(1, 3),
        st.integers(0, 2),
    ),
    max_size=40,
)


@given(drawn, st.booleans(), st.booleans())
def test_sums_are_those_of_the_labels_that_are_left(
    events: list[Any], declared: bool, restarts: bool
) -> None:
    one = engine() if declared else engine(sources=None)
    called = {f"r{n}": ask(one, f"r{n}", (float(n), 0.0, 1.0)) for n in range(4)}
    left: dict[tuple[str, str], tuple[float | None, int]] = {}
    for number, source, tenths, revision, rank in events:
        reward = None if tenths is None else tenths / 10.0
        label(one, f"r{number}", reward, source, revision, rank)
        ref = f"r{number}", source
        if ref not in left or revision > left[ref][1]:
            left[ref] = reward, revision
        invariants.check(one.state, one.records)
    if restarts:
        one = thaw(freeze(one), {name: record.x for name, record in one.records.items()})
    assert one.state.rewards_applied == sum(r.label is not None for r in one.records.values())
    if not declared:
        return
    pairs = 0
    for request_id in called:
        said = {s: r for (ref, s), (r, _) in left.items() if ref == request_id and r is not None}
        gold = [r for s, r in said.items() if s.startswith("human")]
        assert (in_force(one, request_id) is None) == (not said)
        if gold:
            found = one.records[request_id].label
            assert found is not None
            assert found.reward == pytest.approx(sum(gold) / len(gold))
        pairs += bool(gold) * sum(s in SOURCES["judges"] for s in said)
    assert sum(judge["pairs"] for judge in standing(one)[1:]) == pairs


def test_labels_of_all_orders_leave_the_same_sums() -> None:
    events = [
        ("a", 0.2, "human:anna", 0),
        ("a", 0.4, "human:ben", 0),
        ("a", 0.9, "judge-v2", 0),
        ("a", 0.7, "judge-v2", 1),
        ("a", None, "human:ben", 1),
    ]
    found = set()
    for seed in range(20):
        one = engine()
        ask(one, "a")
        for event in Random(seed).sample(events, len(events)):
            label(one, *event)
        cells = sources(one).pairs.cells
        found.add((cells["judge-v2", one.records["a"].model].all.y, in_force(one, "a")))
    assert found == {(7000, (0.2, "human:anna"))}


def test_a_judge_that_favours_a_model_is_told_of_with_its_size_and_shown_on_the_wire() -> None:
    one, draw, told = engine(budget_usd_per_request=0.01), Random(1), []
    for number in range(400):
        name = f"r{number}"
        model = ask(one, name, (draw.gauss(0, 1), 0.0, 0.0))
        truth = min(max(0.6 + draw.gauss(0, 0.08), 0.0), 1.0)
        bias = 0.15 if model == "large" else 0.0
        label(one, name, min(max(truth + bias + draw.gauss(0, 0.05), 0.0), 1.0), "judge-v2")
        told += one.apply(Judged(name, truth, "human"), 1.0).alerts
    assert [(alert.kind, alert.model) for alert in told] == [("source_parted", "large")]
    alert = alert_raised("r", told[0])
    assert alert.size == pytest.approx(0.15, abs=0.05)
    assert alert.evidence["source"] == "judge-v2"
    value = lambda_value("r", one.state, observed_at=utc(0.0), applied={}, unbooked=None)
    document = {**orjson.loads(value), "applied": None}
    shown = decode(LambdaUpdated, orjson.dumps(document)).sources
    assert shown is not None and shown[1].models is not None
    large = next(model for model in shown[1].models if model.model == "large")
    assert large.offset.low < 0.15 < large.offset.high
    assert large.favour is not None and large.favour.low > 0.0
    assert shown[1].agreement is not None and shown[1].agreement.value > 0.6
    assert f"on {alert.model}" in alert_words.sentence(alert)
    lines = source_lines(shown)
    assert any(line.startswith("judge-v2 favours large by +0.1") for line in lines)
    assert not any("favours small" in line and "disfavours" not in line for line in lines)


def test_metrics_show_the_offsets_of_each_judge() -> None:
    one = engine()
    called = ask(one, "a")
    label(one, "a", 0.5, "human"), label(one, "a", 0.9, "judge-v2")
    metrics = RouterMetrics(5, partition_of=lambda router_id: 0)
    metrics._paced(
        "r", lambda_value("r", one.state, observed_at=utc(0.0), applied={}, unbooked=None)
    )
    found = {
        (sample.name, sample.labels.get("source"), sample.labels.get("model")): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }
    assert found["pb_router_source_pairs", "judge-v2", called] == 1.0
    assert found["pb_router_source_offset", "judge-v2", called] == 0.4
    assert found["pb_router_source_offset_high", "judge-v2", called] == 1.0


def test_a_judge_that_changes_what_it_said_is_told_of_without_any_gold() -> None:
    one, told = engine(), []
    for number in range(40):
        ask(one, f"r{number}")
        label(one, f"r{number}", 0.5, "judge-v2")
        event = Judged(f"r{number}", 0.7, "judge-v2", revision=1)
        told += one.apply(event, 1.0).alerts
    assert [(alert.kind, alert.model, round(alert.size, 6)) for alert in told] == [
        ("source_parted", None, 0.2)
    ]
    assert standing(one)[1]["judged_again"] == 40


def test_a_change_in_the_middle_is_found_and_told_once() -> None:
    cell, draw, told = Cell.empty(0), Random(2), []
    for number in range(600):
        bias = 0.15 if number >= 300 else 0.0
        cell.add(round(1e4 * (0.5 + bias + draw.gauss(0, 0.08))), 5000, 3600.0 * number)
        if cell.parted(0.003) is not None:
            told.append(number)
    assert len(told) == 1
    assert 300 < told[0] < 360


def innocent(draw: str, numbers: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return labels of a judge that is right on average, and of gold."""
    if draw == "normal":
        return 0.5 + numbers.normal(0.0, 0.12, n), np.full(n, 0.5)
    gold = (numbers.random(n) < 0.5).astype(float)
    if draw == "thumbs":
        return np.where(numbers.random(n) < 0.2, 1.0 - gold, gold), gold
    likely = numbers.beta(4.0, 0.4, n)
    steps = {"gold is mostly 1": 1, "gold is mostly 1, the judge is binary": 1, "five steps": 4}
    drawn = numbers.binomial(steps[draw], likely) / steps[draw]
    return (drawn, likely) if draw.endswith("binary") else (likely, drawn)


INNOCENT = {
    "normal": 150,
    "thumbs": 150,
    "gold is mostly 1": 400,
    "gold is mostly 1, the judge is binary": 400,
    "five steps": 400,
}
"""Pairs of a life."""


@pytest.mark.parametrize("draw", INNOCENT)
def test_a_judge_that_does_not_part_is_hardly_ever_told_of(draw: str) -> None:
    numbers, false = np.random.default_rng(7), 0
    for _ in range(60):
        cell = Cell.empty(0)
        for number, (y, r) in enumerate(zip(*innocent(draw, numbers, INNOCENT[draw]), strict=True)):
            cell.add(round(1e4 * y), round(1e4 * r), 7_200.0 * number)
            # Of neighbouring looks the next finds hardly ever what the first does not.
            if number % (INNOCENT[draw] // 100) == 0 and cell.parted(0.05) is not None:
                false += 1
                break
    # Of 60 lives, each a part of a year, far less than 3 are allowed.
    assert false <= 2


def test_an_interval_holds_at_every_look() -> None:
    numbers, wrong = np.random.default_rng(5), 0
    for _ in range(200):
        d = numbers.normal(0.1, 0.2, 300)
        n = np.arange(1, 301)
        mean = np.cumsum(d) / n
        squares = np.maximum(np.cumsum(d * d) - n * mean**2, 0.0)
        wrong += any(
            not (one := intervals.of_mean(int(k), float(m), float(s))).low <= 0.1 <= one.high
            for k, m, s in zip(n, mean, squares, strict=True)
        )
    # Of 200 lives 10 are allowed to be wrong at any of their 300 looks.
    assert wrong <= 20


def test_the_interval_is_infinite_before_anything_can_be_said() -> None:
    assert math.isinf(intervals.half_width(1, 0.05))
    assert intervals.of_mean(0, 0.0, 0.0) == (0.0, -1.0, 1.0)
    assert intervals.of_mean(1, 0.3, 0.0) == (0.3, -1.0, 1.0)


def test_a_declaration_is_read_packed_and_written_back() -> None:
    found = config(sources=SOURCES)
    assert declaration_of(found, "r")["sources"] == {
        "gold": "human",
        "judges": ("judge-v2", "judge-v1"),
    }
    one = thaw(freeze(engine()), {})
    assert sources(one).declared == sources(engine()).declared
    one.apply(Redeclared(config(2)), 1.0)
    assert sources(one).lambda_fields(0.0) == {}
    for wrong in (
        {"gold": "human", "judges": ["a", "a"]},
        {"gold": "human", "judges": ["human"]},
        {"gold": "human", "judges": ["human:anna"]},
        {"judges": ["a"]},
    ):
        with pytest.raises(MalformedEvent):
            config(sources=wrong)


def test_pairs_of_a_judge_that_was_dropped_are_not_taken_from_its_new_ones() -> None:
    one = engine()
    ask(one, "a"), ask(one, "b")
    label(one, "a", 0.5, "human")
    label(one, "a", 0.9, "judge-v2")
    one.apply(Redeclared(config(2, sources={"gold": "human"})), 0.0)
    assert not sources(one).pairs.cells
    one.apply(Redeclared(config(3, sources=SOURCES)), 0.0)
    label(one, "b", 0.5, "human")
    label(one, "b", 0.6, "judge-v2")
    label(one, "a", None, "judge-v2", revision=1)
    assert standing(one)[1]["pairs"] == 1
    invariants.check(one.state, one.records)


def test_decisions_of_a_router_with_sources_are_those_without_until_gold_comes() -> None:
    plain, declared = engine(sources=None), engine()
    draw = Random(4)
    for number in range(60):
        name, x = f"r{number}", (draw.gauss(0, 1), draw.gauss(0, 1), 0.0)
        assert ask(plain, name, x) == ask(declared, name, x)
        a, b = plain.records[name], declared.records[name]
        assert (a.propensity, a.expected_reward) == (b.propensity, b.expected_reward)
        reward = draw.random()
        label(plain, name, reward, "judge-v2"), label(declared, name, reward, "judge-v2")
    assert [arm.rewards.kept.tobytes() for arm in plain.state.arms] == [
        arm.rewards.kept.tobytes() for arm in declared.state.arms
    ]


def test_a_withdrawal_is_read_with_a_revision_alone_and_written_with_its_null() -> None:
    said = {"router_id": "r", "request_id": "a", "reward": None, "source": "human", "revision": 1}
    event = decode(RewardObserved, orjson.dumps(said))
    assert decode(RewardObserved, encode(event)) == event
    assert read(Reward, key=None, value=orjson.dumps(said)).reward is None
    for wrong in ({**said, "revision": 0}, {k: v for k, v in said.items() if k != "reward"}):
        with pytest.raises(MalformedEvent):
            read(Reward, key=None, value=orjson.dumps(wrong))
