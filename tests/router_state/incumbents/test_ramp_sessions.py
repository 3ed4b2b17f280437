"""Ramps by session: what requests of one session show together, and how often they mislead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.changes import Journal
from router_state.drawers import DRAWERS, IN_DRAWER
from router_state.events import Asked, Charged, Judged, Redeclared
from router_state.incumbents.incumbents import Incumbents
from router_state.incumbents.ramp_guard import BACK, ON, Guard
from router_state.incumbents.ramp_sessions import SessionEvidence
from tests.router_state.core_reference import context, freeze, having
from tests.router_state.declared_engine import DEAR, PRICE, again, config, engine

RAMP: dict[str, Any] = {"incumbent": "b", "ramp": [0.3, 0.6], "margin": 0.1, "by": "session"}
X = context(1.0, 0.0, 0.0)
Label = tuple[str, float, bool]


@given(
    labels=st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.floats(0.0, 1.0)), min_size=1, max_size=60
    )
)
def test_sums_are_those_of_all_sessions_at_once(labels: list[tuple[str, float]]) -> None:
    guard, sessions = Guard(), SessionEvidence(Journal())
    terms: dict[str, list[float]] = {}
    for at, (name, reward) in enumerate(labels):
        routed = name < "d"
        term = guard.judged(reward, routed=routed, share=0.4)
        sessions.judged(name, term, routed=routed, at=float(at))
        terms.setdefault(name, []).append(term)
    sums, added = sessions.sums, {name: sum(each) for name, each in terms.items()}
    assert (sums.router, sums.incumbent) == (
        sum(n < "d" for n in terms),
        sum(n >= "d" for n in terms),
    )
    assert sums.squares == pytest.approx(sum(t * t for t in added.values()), abs=1e-9)
    assert sums.crossed == pytest.approx(sum(t * len(terms[n]) for n, t in added.items()), abs=1e-9)
    assert sums.sizes == sum(len(each) ** 2 for each in terms.values())
    assert sessions.is_sound()


def of_sessions(
    rng: np.random.Generator, n: int, *, share: float, better: float, alike: float, length: int
) -> Iterator[Label]:
    """Yield labels of sessions that go on beside each other, of drawn lengths."""
    routed, usual, left = (np.zeros(40, bool), np.zeros(40), np.zeros(40, int))
    name = np.zeros(40, int)
    for number in range(n):
        k = int(rng.integers(40))
        if left[k] == 0:
            name[k], left[k] = number, rng.geometric(1.0 / length)
            routed[k], usual[k] = rng.random() < share, alike * rng.normal()
        left[k] -= 1
        mean = 0.5 + usual[k] + better * routed[k]
        yield f"s{name[k]}", float(rng.random() < np.clip(mean, 0.0, 1.0)), bool(routed[k])


def steps(worlds: int, *, by_session: bool, lengths: tuple[int, ...] = (1, 5, 20)) -> int:
    """Return how many drawn worlds leave their step for a wrong reason."""
    wrong = 0
    for seed in range(worlds):
        rng = np.random.default_rng([7, seed])
        share, length = float(rng.choice([0.1, 0.3, 0.5])), int(rng.choice(lengths))
        bad = bool(seed % 2)  # exactly as bad as the margin must not go on, as good not fall back
        better, margin = (-0.1, 0.1) if bad else (0.0, 0.0)
        guard, sessions = Guard(), SessionEvidence(Journal())
        world = of_sessions(rng, 2000, share=share, better=better, alike=0.3, length=length)
        for at, (name, reward, routed) in enumerate(world):
            term = guard.judged(reward, routed=routed, share=share)
            sessions.judged(name, term, routed=routed, at=float(at))
            labels = guard.router + guard.incumbent
            found = sessions.interval(guard.total, labels) if by_session else guard.interval()
            if guard.leads_to(found, margin, None) == (ON if bad else BACK):
                wrong += 1
                break
    return wrong


def test_false_steps_are_rare_though_requests_of_a_session_are_alike() -> None:
    """Once in a hundred times at most; by request far more often, so the worlds can tell."""
    assert steps(80, by_session=True) <= 2
    assert steps(30, by_session=False, lengths=(20,)) >= 3


def test_sessions_that_are_forgotten_leave_their_sums() -> None:
    sessions, many = SessionEvidence(Journal()), 2 * DRAWERS * IN_DRAWER
    for number in range(many):
        sessions.judged(f"s{number}", 0.5, routed=bool(number % 2), at=float(number) / 1e3)
    assert len(sessions.known) <= DRAWERS * IN_DRAWER
    assert sessions.sums.router + sessions.sums.incumbent == many and sessions.is_sound()


def judged(one: Any, n: int, *, router: float, seed: int, length: int = 4) -> list[str]:
    """Decide and judge requests of sessions; the incumbent's answers earn 0.5."""
    rng, kinds = np.random.default_rng(seed), list[str]()
    for number in range(n):
        name, session = f"{seed}-{number}", f"{seed}-s{number // length}"
        record = one.apply(Asked(name, X, session_id=session), 0.0).decision
        one.apply(Charged(name, 0.001), 1.0)
        mean = router if record.is_paced else 0.5
        changes = one.apply(Judged(name, float(rng.random() < mean), x=X), 1.0)
        for alert in changes.alerts:
            if alert.kind in ("ramped", "fell_back"):
                kinds.append(alert.kind)
                assert alert.evidence["sessions_router"] >= 50
                assert alert.evidence["sessions_incumbent"] >= 50
    return kinds


def test_a_ramp_by_session_goes_on_and_falls_back() -> None:
    one = engine({"a": PRICE, "b": DEAR}, **RAMP)
    assert judged(one, 3000, router=0.7, seed=1) == ["ramped"]
    # What is stopped goes on with the same evidence.
    judged(one, 40, router=0.7, seed=2)
    other = again(one)
    assert freeze(other) == freeze(one)
    assert (
        having(other.state, Incumbents).sessions.sums == having(one.state, Incumbents).sessions.sums
    )
    for played in (one, other):
        assert judged(played, 6000, router=0.1, seed=3)[0] == "fell_back"
    assert freeze(other) == freeze(one)


def test_requests_of_few_sessions_show_nothing_however_many_they_are() -> None:
    one = engine({"a": PRICE, "b": DEAR}, **RAMP)
    assert judged(one, 4000, router=0.9, seed=1, length=100) == []


def test_another_unit_begins_the_step_anew() -> None:
    one = engine({"a": PRICE, "b": DEAR}, **RAMP)
    judged(one, 100, router=0.6, seed=1)
    kept = having(one.state, Incumbents)
    assert kept.sessions.sums.router and kept.pieces
    one.apply(
        Redeclared(config({"a": PRICE, "b": DEAR}, **RAMP | {"by": "request"}, offset=2)), 2.0
    )
    assert not kept.pieces and kept.guard == Guard()
    freeze(one)
