"""Offsets of judges that other routers told are taken off, given back, and stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.config import LIVE, ModelConfig, Price, RouterConfig
from router_state.events import Judged
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family
from router_state.families.family_reports import MemberPrior, Model
from router_state.shared_numbers import Numbers, bytes_of
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.measured_sources import MeasuredSources
from router_state.sources.parting import Cell
from router_state.sources.shared_offsets import (
    LEAST_PAIRS_SHARED,
    OFFSETS_APART,
    OthersOffsets,
    pack,
    shareable,
    take,
    unpack,
)
from router_state.state import restoring, state_pieces

D, NAMES = 3, ("a", "b")
SEEDS = st.integers(0, 10**6)


def cells(counts: dict[str, int], offset: int = 2_000) -> dict[tuple[str, str], Cell]:
    """Return pairs of a judge that is above gold by an offset, in parts of a reward."""
    found = {}
    for number, (model, count) in enumerate(counts.items()):
        cell = found["judge", model] = Cell.empty(1)
        for k in range(count):
            gold = 3_000 + 100 * (k % 5)
            cell.add(gold + offset * (number + 1), gold, float(k))
    return found


def config(*, family: bool = True, calibrate: str = "on") -> RouterConfig:
    declared: dict[str, object] = {
        "sources": DeclaredSources("human", ("judge",), {"judge": calibrate})
    }
    if family:
        declared["family"] = FamilyDeclared("all")
    models = {name: ModelConfig(Price(0.1, 0.4)) for name in NAMES}
    return RouterConfig(models, None, D, "live", LIVE, capabilities=declared, offset=3)


def told(n: int, offsets: dict[str, float], precision: float = 400.0) -> MemberPrior:
    """Return a prior that tells offsets of the judge."""
    unit = precision * OFFSETS_APART**2
    models = {}
    for name, value in offsets.items():
        numbers = Numbers(np.array([unit]), np.array([unit * value / OFFSETS_APART]))
        models[name] = Model(shared={"sources:judge": bytes_of(numbers)})
    return MemberPrior("all", 3, n, models)


def judged(engine: Played, first: int, count: int, *, seed: int = 0) -> None:
    """Let the judge label requests."""
    rng = np.random.default_rng([seed, first])
    for k in range(first, first + count):
        engine.decide(str(k), np.append(rng.normal(size=D - 1), 1.0), now=float(k))
        engine.play(Judged(str(k), float(rng.uniform(0.4, 0.9)), "judge", 1))


def expected(engine: Played) -> list[float]:
    return [arm.rewards.predict(np.eye(D)[-1]) for arm in engine.state.arms]


def test_nothing_leaves_before_twenty_pairs_and_of_few_only_the_mean() -> None:
    few = shareable(["judge"], NAMES, cells({"a": int(LEAST_PAIRS_SHARED) - 1}))
    assert few == {}
    found = shareable(["judge"], NAMES, cells({"a": 30, "b": 10}))
    means = {name: OFFSETS_APART * one["judge"].means[0] for name, one in found.items()}
    assert means["a"] == pytest.approx(0.2, abs=1e-3)
    assert means["b"] == pytest.approx((30 * 0.2 + 10 * 0.4) / 40, abs=1e-3)
    assert found["a"]["judge"].precision[0] > 2.9 * found["b"]["judge"].precision[0]


@given(SEEDS)
def test_what_is_told_is_taken_off_all_labels_and_given_back(seed: int) -> None:
    engine, alone = Played.start(config()), Played.start(config())
    for one in (engine, alone):
        judged(one, 0, 20, seed=seed)
    before = expected(engine)
    engine.play(told(1, {"a": 0.3, "b": 0.3}))
    after = expected(engine)
    assert all(low < high for low, high in zip(after, before, strict=True))
    for one in (engine, alone):
        one.configure(replace(config(family=False), offset=4), now=20.0)
    np.testing.assert_allclose(expected(engine), expected(alone), atol=1e-9)


def test_new_labels_of_a_told_judge_are_learned_without_its_offset() -> None:
    engine = Played.start(config())
    engine.play(told(1, {"a": 0.3, "b": 0.3}))
    judged(engine, 0, 20)
    sources = engine.state.having(MeasuredSources)
    assert sources is not None
    offsets = [one.offset for one in sources.calibration.labels.values()]
    assert offsets and all(one > 0.1 for one in offsets)


@given(SEEDS)
def test_a_member_goes_on_from_its_record_as_if_it_had_never_stopped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = Played.start(config()), Played.start(config())
    for n in range(1, 4):
        event = told(n, {str(name): float(rng.normal(0.0, 0.2)) for name in rng.permutation(NAMES)})
        for engine in (one, other):
            judged(engine, 20 * n, 20, seed=seed)
            engine.play(event)
        pieces = state_pieces.pack_pieces(other.state)
        other = Played(
            restoring.unpack(pieces.get, dict(other.state.open_commitments)), other.records
        )
        assert state_pieces.pack_pieces(one.state) == state_pieces.pack_pieces(other.state)


def test_what_is_told_of_a_judge_that_is_declared_no_more_is_forgotten() -> None:
    engine = Played.start(config())
    engine.play(told(1, {"a": 0.3, "b": 0.3}))
    sources = engine.state.having(MeasuredSources)
    assert sources is not None and len(sources.calibration.others) == 2
    declared = {"sources": DeclaredSources("human", ("other",)), "family": FamilyDeclared("all")}
    engine.configure(replace(config(), capabilities=declared, offset=4), now=1.0)
    assert sources.calibration.others == {} and engine.state.having(Family) is not None


def test_what_is_told_comes_back_from_its_bytes_and_nothing_counts_for_nothing() -> None:
    kept: OthersOffsets = {}
    one = Numbers(np.array([4.0]), np.array([2.0]))
    assert take(kept, ["judge"], {"a": {"judge": one}}) == {"judge"}
    assert unpack(pack(kept)) == kept
    assert take(kept, ["judge"], {"a": {"judge": one}}) == set()
    nothing = Numbers(np.zeros(1), np.zeros(1))
    assert take(kept, ["judge"], {"a": {"judge": nothing}}) == {"judge"} and kept == {}
