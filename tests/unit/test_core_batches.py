"""A batch of decisions or rewards is what they would have been one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state import batches, errors, invariants
from router_state.changes import Outcome
from router_state.engine import Engine
from router_state.record import RequestRecord
from tests.unit.core_reference import CHEAP, DEAR, MIDDLE, Array, context, declaration, freeze

NAMES = ("cheap", "middle", "dear")


def contexts(n: int, *, d: int = 4, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [np.append(rng.normal(size=d - 1), 1.0) for _ in range(n)]


def alike(one: RequestRecord, other: RequestRecord) -> None:
    """Compare two decisions: names and counts exactly, numbers to 1e-9."""
    assert (one.seq, one.model, one.reason, one.propensity) == (
        other.seq,
        other.model,
        other.reason,
        other.propensity,
    )
    assert (one.offset, one.config_offset, one.decided_at, one.price) == (
        other.offset,
        other.config_offset,
        other.decided_at,
        other.price,
    )
    assert one.candidates is not None and other.candidates is not None
    assert one.candidates.models == other.candidates.models
    assert one.candidates.excluded == other.candidates.excluded
    numbers = [
        [
            r.expected_reward,
            r.expected_cost_usd,
            r.lambda_t,
            *r.candidates.terms,
            *r.candidates.penalty,
        ]
        for r in (one, other)
    ]
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=0, atol=1e-9)


def equal(one: Engine, other: Engine) -> None:
    """Compare two routers to 1e-9."""
    for engine in (one, other):
        invariants.check(engine.state, engine.records)
    a, b = one.state, other.state
    assert (a.t, a.seq, a.settled, a.rewards_applied) == (b.t, b.seq, b.settled, b.rewards_applied)
    assert list(a.open_commitments) == list(b.open_commitments)
    for mine, theirs in zip(a.arms, b.arms, strict=True):
        assert (
            mine.belief.last_update == theirs.belief.last_update
            and mine.belief.last_played == theirs.belief.last_played
        )
        assert mine.pulls_left == theirs.pulls_left
        assert mine.belief.decay == pytest.approx(theirs.belief.decay, abs=1e-9)
    assert a.latest == b.latest
    for k in range(len(a.arms)):
        np.testing.assert_allclose(
            a.arms[k].belief.A_inv(), b.arms[k].belief.A_inv(), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(
            a.arms[k].belief.theta, b.arms[k].belief.theta, rtol=0, atol=1e-9
        )
    np.testing.assert_allclose(
        [a.lambda_t, a.committed_usd],
        [b.lambda_t, b.committed_usd],
        atol=1e-9,
    )
    for mine, yours in zip(one.records.values(), other.records.values(), strict=True):
        assert (mine.model, mine.label) == (yours.model, yours.label)


def play(
    options: dict[str, Any], sizes: list[int], *, d: int = 4, seed: int = 0
) -> tuple[Engine, Engine]:
    """Play the same rounds of decisions, bills and rewards in batches and one by one; return both
    routers.
    """
    rng = np.random.default_rng(seed)
    many, single = (Engine.start(declaration(dimensions=d, **options)) for _ in range(2))
    for number, n in enumerate(sizes):
        ids, drawn = (
            [f"{number}-{i}" for i in range(n)],
            contexts(n, d=d, seed=1000 * seed + number),
        )
        decided = many.decide_many(ids, drawn, now=float(number), offsets=range(n))
        for record, request_id, x, offset in zip(decided, ids, drawn, range(n), strict=True):
            assert many.records[request_id] is record
            alike(record, single.decide(request_id, x, now=float(number), offset=offset))
        for request_id, cost in zip(ids, rng.exponential(5e-4, size=n).tolist(), strict=True):
            for engine in (many, single):
                engine.settle(request_id, cost_usd=cost)
        kept = [
            (ids[i], float(np.clip(0.5 + 0.3 * drawn[i][0] + 0.1 * rng.normal(), 0, 1)))
            for i in rng.permutation(n)[: n - n // 4]
        ]
        assert many.learn_many(kept, source="judge", rank=1) == [Outcome.APPLIED] * len(kept)
        for request_id, reward in kept:
            single.learn(request_id, reward=reward, rank=1)
        equal(many, single)
    return many, single


@pytest.mark.parametrize("budget", [None, 1e-4, 5e-4, 1e-2])
@pytest.mark.parametrize("gamma", [0.5, 0.997, 1.0])
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
    alpha=st.sampled_from([0.0, 0.01, 2.0]),
)
def test_the_papers_policy_in_batches_is_the_same_policy(
    budget: float | None, gamma: float, sizes: list[int], seed: int, alpha: float
) -> None:
    play({"budget": budget, "gamma": gamma, "alpha": alpha, "lambda_c": 0.1}, sizes, seed=seed)


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_every_other_policy_gives_what_one_by_one_gives(sizes: list[int], seed: int) -> None:
    for options in (
        {"profile": "live"},
        {"epsilon": 0.3},
        {"pulls": 3},
        {"commit_and_settle": True},
    ):
        play(options, sizes, seed=seed)


@pytest.mark.parametrize("d", [26, 70])
def test_batches_in_many_dimensions(d: int) -> None:
    many, _ = play({"budget": 5e-4, "alpha": 0.5}, [64, 3, 64, 1, 100], d=d)
    assert len({record.model for record in many.records.values()}) >= 2


def test_an_ordinary_batch_takes_the_fast_way() -> None:
    many, _ = play({"budget": 5e-4, "lambda_c": 0.1}, [10, 10])
    ids, drawn = ["a", "b"], contexts(2)
    assert batches.decide(many.state, many.records, ids, drawn, now=9.0, offsets=[0, 1]) is not None
    assert batches.learn(many.state, many.records, [("a", 0.5)], source="judge", rank=0, revision=0)


def test_an_idle_arm_that_a_batch_plays_is_fresh_for_the_rest_of_it() -> None:
    many, _ = play({"budget": None, "gamma": 0.5, "alpha": 3.0, "lambda_c": 0.0}, [60])
    assert {record.model for record in many.records.values()} == set(NAMES)


def test_known_and_repeated_requests_in_a_batch_get_the_decision_they_have() -> None:
    engine = Engine.start(declaration(lambda_c=0.1))
    first = engine.decide("a", contexts(1)[0], now=0.0)
    again = engine.decide_many(["b", "a", "b"], contexts(3), now=1.0)
    assert again[1] is first
    assert again[0] is again[2]
    assert engine.state.seq == 2
    invariants.check(engine.state, engine.records)


BAD: dict[str, tuple[type[errors.RouterStateError], Array]] = {
    "shape": (errors.WrongContext, np.ones(3)),
    "a number": (errors.WrongContext, np.array(1.0)),
    "two rows in one": (errors.WrongContext, np.ones((2, 4))),
    "no bias": (errors.WrongContext, np.array([1.0, 1.0, 1.0, 2.0])),
    "not a number": (errors.NonFiniteInput, context(np.nan, 0, 0)),
    "infinite": (errors.NonFiniteInput, context(0, np.inf, 0)),
    "overflow": (errors.WrongContext, context(0, 1e200, 0)),
    "out of proportion": (errors.WrongContext, context(0, 0, 2e4)),
}


@pytest.mark.parametrize("name", BAD)
def test_a_context_that_does_not_fit_is_refused_after_those_before_it_are_decided(
    name: str,
) -> None:
    error, x = BAD[name]
    engine, single = (Engine.start(declaration(lambda_c=0.1)) for _ in range(2))
    drawn = contexts(4)
    drawn[2] = x
    with pytest.raises(error):
        engine.decide_many(list("abcd"), drawn, now=0.0)
    for request_id, fitting in zip("ab", drawn, strict=False):
        single.decide(request_id, fitting, now=0.0)
    assert freeze(engine) == freeze(single)


@pytest.mark.parametrize(
    ("error", "rewards"),
    [
        (errors.UnknownRequest, [("a", 0.5), ("nobody", 0.5)]),
        (errors.NonFiniteInput, [("a", 0.5), ("b", float("nan"))]),
        (errors.RewardOutOfRange, [("a", 0.5), ("b", 1.5)]),
    ],
)
def test_a_reward_that_does_not_fit_is_refused_after_those_before_it_are_learned(
    error: type[errors.RouterStateError], rewards: list[tuple[str, float]]
) -> None:
    engine, single = (Engine.start(declaration()) for _ in range(2))
    for each in (engine, single):
        each.decide_many(list("ab"), contexts(2), now=0.0)
    with pytest.raises(error):
        engine.learn_many(rewards)
    single.learn("a", reward=0.5)
    assert freeze(engine) == freeze(single)


@pytest.mark.parametrize(
    "batch", [lambda e: e.decide_many([], [], now=1.0), lambda e: e.learn_many([])]
)
def test_an_empty_batch_changes_nothing(batch: Callable[[Engine], list[Any]]) -> None:
    engine = Engine.start(declaration())
    before = freeze(engine)
    assert batch(engine) == []
    assert freeze(engine) == before


def test_revisions_repeats_and_removed_models_in_a_batch_of_rewards() -> None:
    engine = Engine.start(declaration(lambda_c=0.1))
    engine.decide("old", contexts(1)[0], now=0.0, allowed_models=["dear"])
    engine.decide_many(list("abc"), contexts(3), now=1.0)
    engine.configure(declaration({"cheap": CHEAP, "middle": MIDDLE}), now=2.0)
    assert engine.learn_many([("a", 0.5), ("a", 0.7), ("b", 0.2)]) == [
        Outcome.APPLIED,
        Outcome.DUPLICATE,
        Outcome.APPLIED,
    ]
    assert engine.learn_many([("a", 0.9), ("c", 0.1)], revision=1) == [
        Outcome.REVISED,
        Outcome.APPLIED,
    ]
    assert engine.learn_many([("old", 0.9)]) == [Outcome.APPLIED]
    engine.decide_many(list("xyz"), contexts(3), now=3.0)
    assert {engine.records[request_id].model for request_id in "xyz"} <= {"cheap", "middle"}
    invariants.check(engine.state, engine.records)


def test_a_batch_for_nobody_is_refused() -> None:
    engine = Engine.start(declaration({"only": DEAR}))
    engine.configure(declaration({}), now=1.0)
    with pytest.raises(errors.EmptyPortfolio):
        engine.decide_many(["a"], contexts(1), now=2.0)
