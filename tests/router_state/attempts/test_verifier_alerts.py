"""Alerts of verifiers: that one is worthless, and that one has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agents.publishing.published_values import alert_raised
from benchmarks.played import Played
from drawing.alert_words import sentence
from router_state.attempts.verdict_pairs import BLOCK, BLOCKS, Pairs
from router_state.attempts.verifier import Declared, Verifier
from router_state.events import Verified
from tests.router_state.attempts.test_follows import X, config
from tests.router_state.core_reference import freeze, thaw

FALSE_ALERTS = 300
"""Drawn verifiers that do not change, or that do tell something."""


def drawn(
    pairs: Pairs, n: int, passes: float, stops: float, *, seed: int, right: float = 0.6
) -> tuple[list[int], list[int]]:
    """Add pairs of a verifier; return when it was told to be worthless, and to have changed."""
    rng, worthless, parted = np.random.default_rng(seed), [], []
    for number in range(n):
        label = float(rng.random() < right)
        passed = bool(rng.random() < (passes if label else 1.0 - stops))
        pairs.add(label - right, passes=passed)
        if pairs.worthless(0.01) is not None:
            worthless.append(number)
        if pairs.parted(0.01) is not None:
            parted.append(number)
    return worthless, parted


@pytest.mark.parametrize(("passes", "stops"), [(0.5, 0.5), (0.8, 0.2), (0.52, 0.5)])
def test_a_coin_is_told_to_be_worthless_once(passes: float, stops: float) -> None:
    for seed in range(4):
        worthless, _ = drawn(Pairs(0.0), 6000, passes, stops, seed=seed)
        assert len(worthless) == 1


def test_a_verifier_that_tells_something_is_hardly_ever_told_to_be_worthless() -> None:
    told = [drawn(Pairs(0.0), 400, 0.75, 0.6, seed=seed)[0] for seed in range(100)]
    assert sum(map(bool, told)) <= 2


def test_one_that_does_not_change_is_hardly_ever_told_to_have_changed() -> None:
    told = [drawn(Pairs(0.0), 400, 0.9, 0.8, seed=seed)[1] for seed in range(100)]
    assert sum(map(bool, told)) <= 2


@pytest.mark.parametrize(
    ("before", "after", "up"), [((0.9, 0.9), (0.5, 0.5), False), ((0.5, 0.5), (0.95, 0.95), True)]
)
def test_one_that_becomes_another_is_told_and_then_measured_anew(
    before: tuple[float, float], after: tuple[float, float], up: bool
) -> None:
    pairs = Pairs(0.0)
    drawn(pairs, 300, *before, seed=1)
    _, parted = drawn(pairs, 300, *after, seed=2)
    assert len(parted) == 1
    assert parted[0] < BLOCK * BLOCKS
    assert (pairs.separation(0.05).value > 0.5) is up


def verdicts(one: Played, n: int, *, coin: bool, start: int = 0) -> list[Any]:
    """Play a router's requests, each with a verdict and a label; return the alerts."""
    rng, alerts = np.random.default_rng(5), []
    for number in range(start, start + n):
        name = f"r{number}"
        one.decide(name, X, now=60.0 * number)
        one.settle(name, 1e-4)
        right = float(rng.random() < 0.6)
        verdict = float(rng.random() < 0.5) if coin else right
        one.play(Verified(name, "tests", verdict), 60.0 * number)
        one.learn(name, reward=right, attempt=0)
        alerts += [one for one in one.take_alerts() if one.kind.startswith("verifier")]
    return alerts


def test_alerts_name_the_verifier_and_what_it_costs_a_day() -> None:
    one = Played.start(config(attempts=Declared({"tests": Verifier(1e-5)})))
    alert, *others = verdicts(one, 2600, coin=True)
    assert (alert.kind, others) == ("verifier_worthless", [])
    # 1,440 verdicts a day.
    assert alert.size == pytest.approx(1440 * 1e-5, rel=0.1)
    assert alert.evidence["verifier"] == "tests"
    said = sentence(alert_raised("acme", alert))
    assert said.startswith("verdicts of tests tell little or nothing, and cost $0.014")
    contexts = dict.fromkeys(one.records, X)
    assert freeze(thaw(freeze(one), contexts)) == freeze(one)


def test_a_verifier_that_becomes_a_coin_is_told_to_tell_less() -> None:
    one = Played.start(config(attempts=Declared({"tests": Verifier(1e-5)})))
    assert verdicts(one, 250, coin=False) == []
    alert = verdicts(one, 300, coin=True, start=250)[0]
    assert (alert.kind, alert.direction) == ("verifier_parted", "down")
    assert "tell less than before" in sentence(alert_raised("acme", alert))
