"""Drift of quality: noticed, acted upon, and forgotten when it is over."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.played import Played
from router_state.changes import Outcome
from router_state.kernel.learning.suspicion import Suspicion
from router_state.record import NOT_LEARNED
from router_state.state import invariants, restoring, state_pieces
from tests.router_state.core_reference import observed
from tests.router_state.live_world import World, world


def fallen(w: World, level: float) -> World:
    """Let the middle model earn this level on every prompt."""
    w.quality = lambda model, mean: level if model == "middle" else mean
    return w


def test_a_model_that_falls_is_left_and_one_that_recovers_is_taken_back() -> None:
    w = world()
    w.play(1000)
    share = w.chosen[500:].count("middle") / 500
    fallen(w, 0.3).play(600)
    assert w.chosen[-300:].count("middle") < 0.15 * 300
    w.quality = lambda _, mean: mean
    w.play(600)
    assert w.chosen[-300:].count("middle") / 300 == pytest.approx(share, abs=0.15)
    assert [(a.kind, a.model, a.signal) for a in w.news] == [
        ("drift", "middle", "reward"),
        ("recovered", "middle", "reward"),
    ]
    assert w.news[0].direction == "down" and w.news[0].size == pytest.approx(0.6, abs=0.15)
    assert "probe" in w.reasons


def test_one_failure_is_one_alarm_and_one_recovery_though_a_hundred_rewards_are_on_their_way() -> (
    None
):
    w, delay = world(late=10_000), np.random.default_rng(1)
    due: dict[int, list[int]] = {}

    def play(n: int) -> None:
        for i in range(len(w.spent), len(w.spent) + n):
            w.play(1)
            due.setdefault(i + int(delay.integers(70, 131)), []).append(i)
            for j in due.pop(i, []):
                w.answer(j)

    play(1000)
    w.quality = lambda model, mean: mean - 0.5 if model == "middle" else mean
    play(600)
    w.quality = lambda _, mean: mean
    play(800)
    assert [(a.kind, a.model) for a in w.news] == [("drift", "middle"), ("recovered", "middle")]


def test_some_good_answers_of_a_failed_model_do_not_end_the_suspicion() -> None:
    w = world()
    w.play(1000)
    luck = np.random.default_rng(3)
    w.quality = lambda model, mean: 0.2 if model == "middle" and luck.random() < 0.8 else mean
    w.play(600)
    assert [(a.kind, a.model) for a in w.news] == [("drift", "middle")]
    assert w.chosen[-300:].count("middle") < 0.15 * 300


def test_rewards_of_decisions_before_the_alarm_neither_confirm_nor_clear_it() -> None:
    w = world()
    w.play(1000)
    suspicion = Suspicion(-0.5, 10, 0.0, 0.0, w.engine.state.seq)
    arms = w.engine.state.arms
    arms.suspect_of(arms["middle"], suspicion)
    w.late = 10_000  # from here on nothing is answered but what follows
    w.play(1)
    old = next(
        i
        for i in range(1000, 0, -1)
        if w.chosen[i - 1] == "middle" and w.engine.records[str(i - 1)].label is None
    )
    w.answer(old - 1)
    assert (suspicion.count, suspicion.evidence) == (10, 0.0)


def test_while_under_suspicion_the_statistics_rest() -> None:
    w = world()
    w.play(600)
    fallen(w, 0.2).play(200)
    arms = w.engine.state.arms
    k = arms.row["middle"]
    assert arms[k].suspicion is not None
    before = observed(arms[k].rewards, arms.rewards)
    w.play(200)
    # What the arms share moves with the others, what this one has seen does not.
    after = observed(arms[k].rewards, arms.rewards)
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)
    labels = [w.engine.records[str(i)].label for i in range(700, 990)]
    assert min(label.forgotten for label in labels if label) == NOT_LEARNED
    invariants.check(w.engine.state, w.engine.records)


def test_a_reward_that_was_held_against_a_suspicion_moves_nothing_when_it_is_revised() -> None:
    w = world()
    w.play(600)
    fallen(w, 0.2).play(100)
    arms = w.engine.state.arms
    k = arms.row["middle"]
    i = next(
        i
        for i in range(690, 600, -1)
        if (label := w.engine.records[str(i)].label) and label.forgotten == NOT_LEARNED
    )
    theta = arms[k].rewards.theta.copy()
    assert w.engine.learn(str(i), reward=1.0, revision=1) is Outcome.REVISED
    assert (arms[k].rewards.theta == theta).all()


def test_what_lasts_becomes_the_new_normal() -> None:
    w = world(None)
    w.quality = lambda model, mean: {"middle": 0.93, "cheap": 0.2, "dear": 0.5}[model]
    w.play(3000)
    arms = w.engine.state.arms
    x = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    assert arms["middle"].rewards.theta @ x == pytest.approx(0.93, abs=0.03)
    assert w.chosen[-500:].count("middle") > 400


def test_nothing_is_probed_while_nothing_is_suspected() -> None:
    w = world()
    w.play(2000)
    assert set(w.reasons) == {"ucb"}


def test_a_probe_of_a_dear_model_is_rarer_than_of_a_cheap_one() -> None:
    shares = {}
    for model in ("cheap", "dear"):
        w = world(6e-4 if model == "cheap" else 2e-4)
        w.play(500)
        arms = w.engine.state.arms
        arms.suspect_of(arms[model], Suspicion(-0.6, 10, 0.0, 0.0, 0))
        w.quality = lambda m, mean, model=model: mean - 0.6 if m == model else mean
        w.play(1000)
        shares[model] = w.reasons.count("probe") / 1000
    assert shares["dear"] < shares["cheap"] < 0.1


def test_an_arm_that_is_hardly_known_raises_no_alarm() -> None:
    w = world(None, cold=("cheap", "middle", "dear"))
    w.play(400)
    assert w.news == []


def test_stopped_under_suspicion_and_never_stopped_are_equal_to_the_bit() -> None:
    w = world()
    w.play(600)
    fallen(w, 0.2).play(150)
    state = w.engine.state
    assert state.arms.suspect
    pieces = state_pieces.pack_pieces(state)
    again = restoring.unpack(pieces.get, state.open_commitments)
    assert state_pieces.pack_pieces(again) == pieces
    other = Played(again, dict(w.engine.records))
    x = np.array([0.3, -0.2, 0.1, 0.0, 1.0])
    left, right = (engine.decide("next", x, now=750.0) for engine in (w.engine, other))
    assert left == right or (left.candidates, left.model, left.lambda_t) == (
        right.candidates,
        right.model,
        right.lambda_t,
    )
