"""A verifier's table follows from own labels and from what other routers told, and replays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.attempts.shared_verdicts import LEAST_VERDICTS_SHARED, SharedVerdicts
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Declared, Verifier
from router_state.config import LIVE, ModelConfig, Price, RouterConfig
from router_state.events import Judged, Verified
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family
from router_state.families.family_reports import MemberPrior, Model
from router_state.kernel import VerdictTable
from router_state.shared_numbers import Numbers, bytes_of
from router_state.state import restoring, state_pieces

NAMES = ("a", "b", "c")
SEEDS = st.integers(0, 10**6)


def learned(seed: int, labels: int) -> tuple[VerdictTable, SharedVerdicts]:
    """Return a table of two bins that has learned labels of a good verifier, and its sums."""
    rng = np.random.default_rng(seed)
    table, sums = VerdictTable(2, NAMES), SharedVerdicts(2)
    for _ in range(labels):
        k, right = int(rng.integers(3)), float(rng.random() < 0.6)
        j = int(rng.random() < (0.9 if right else 0.2))
        table.see(k, j, 0.6)
        sums.note(table, k, j, reward=0.6, variance=0.001, label=right)
        table.learn(k, j, 0.6, 0.001, right)
    return table, sums


def test_nothing_leaves_before_twenty_labels() -> None:
    for count in (LEAST_VERDICTS_SHARED - 1, LEAST_VERDICTS_SHARED):
        table, sums = learned(1, count)
        W = [numbers.precision[:2].sum() for numbers in sums.shareable(table).values()]
        assert any(one > 0.0 for one in W) is (count >= LEAST_VERDICTS_SHARED)


def test_a_model_with_few_labels_tells_the_mean_of_all() -> None:
    table, sums = learned(2, 40)
    means = [numbers.means[:2] for numbers in sums.shareable(table).values()]
    assert all(
        table.array[10 + 9 * k + 6 : 10 + 9 * k + 8].sum() < LEAST_VERDICTS_SHARED for k in range(3)
    )
    np.testing.assert_allclose(means[0], means[1])


@given(SEEDS)
def test_who_is_told_knows_what_verdicts_mean_before_the_first_label(seed: int) -> None:
    known, sums = learned(seed, 600)
    table, own = VerdictTable(2, NAMES), SharedVerdicts(2)
    assert own.take({**sums.shareable(known)}, table)
    assert table.is_sound()
    for k in range(3):
        for j in range(2):
            assert table.given(k, j, 0.6) == pytest.approx(known.given(k, j, 0.6), abs=0.08)
    right, wrong = table.likelihoods(0, 1, 0.0)
    assert right > 0.75 and wrong < 0.4


@given(SEEDS)
def test_what_was_told_is_taken_back_whole(seed: int) -> None:
    known, sums = learned(seed, 300)
    _, ours = learned(seed + 1, 50)
    tables = [VerdictTable(2, NAMES) for _ in range(2)]
    for table in tables:
        ours.others = {"a": [0.0] * 4}
        ours.take({"a": None}, table)
    ours.take({**sums.shareable(known)}, tables[0])
    assert not np.allclose(tables[0].array, tables[1].array)
    ours.take(dict.fromkeys(NAMES), tables[0])
    np.testing.assert_allclose(tables[0].array, tables[1].array, atol=1e-9)


def test_what_was_told_is_not_told_on() -> None:
    known, sums = learned(3, 600)
    table, own = VerdictTable(2, NAMES), SharedVerdicts(2)
    own.take({**sums.shareable(known)}, table)
    assert own.shareable(table) == {}


def test_who_joins_later_tells_what_its_table_had_learned() -> None:
    known, sums = learned(4, 600)
    later = SharedVerdicts(2)
    later.begin(known)
    for name, numbers in later.shareable(known).items():
        mean = sums.shareable(known)[name].means[:2]
        np.testing.assert_allclose(numbers.means[:2], mean, atol=1.0)


def family() -> Played:
    """Return a router with a verifier, in a family."""
    models = {name: ModelConfig(Price(1.0 + k, 4.0 * (1.0 + k))) for k, name in enumerate(NAMES)}
    verifiers = Declared({"v": Verifier()}, 2)
    declared = {"attempts": verifiers, "family": FamilyDeclared("all")}
    return Played.start(RouterConfig(models, 0.01, 3, "live", LIVE, capabilities=declared))


def play(engine: Played, count: int) -> None:
    """Let requests be decided, billed, verified and judged."""
    rng = np.random.default_rng(7)
    for i in range(count):
        x, right = np.array([*rng.normal(size=2), 1.0]), float(rng.random() < 0.6)
        record = engine.decide(str(i), x, now=float(i))
        engine.settle(str(i), 0.002)
        if record.plan is not None and record.plan.steps[0].verify is not None:
            engine.play(Verified(str(i), "v", float(rng.random() < (0.9 if right else 0.2)), 0))
        engine.play(Judged(str(i), right, attempt=0))


def told(engine: Played, n: int, z: float) -> MemberPrior:
    """Return what others say of the verifier of two models."""
    numbers = Numbers(np.full(4, 20.0), 20.0 * np.array([-z, z, 1.0, 6.0]))
    models = engine.state.arms.names[:2]
    one = Model(b"", b"", {"attempts:v": bytes_of(numbers)})
    member = engine.state.having(Family)
    assert member is not None
    return MemberPrior("all", member.place.born, n, dict.fromkeys(models, one))


def test_a_member_with_a_verifier_goes_on_from_its_record_as_if_it_had_never_stopped() -> None:
    engine = family()
    play(engine, 160)
    engine.play(told(engine, 1, 2.0), 200.0)
    pieces = state_pieces.pack_pieces(engine.state)
    other = Played(
        restoring.unpack(pieces.get, dict(engine.state.open_commitments)), dict(engine.records)
    )
    for one in (engine, other):
        one.play(told(one, 2, 3.0), 201.0)
        one.decide("later", np.ones(3), now=202.0)
    assert state_pieces.pack_pieces(engine.state) == state_pieces.pack_pieces(other.state)


def test_a_member_tells_of_its_verifiers_and_gives_back_what_it_took() -> None:
    engine = family()
    play(engine, 300)
    member, attempts = (engine.state.having(kind) for kind in (Family, Attempts))
    assert isinstance(member, Family) and isinstance(attempts, Attempts)
    report = member.reported("r", "")
    assert any("attempts:v" in one.shared for one in report.models.values())
    engine.play(told(engine, 1, 3.0), 400.0)
    assert member.reported("r", "").models == report.models
    config = engine.state.config
    capabilities = {"attempts": config.capabilities["attempts"]}
    engine.configure(replace(config, capabilities=capabilities), now=401.0)
    assert not attempts.evidence.shared["v"].others


def test_verdicts_that_others_told_of_are_shown_apart() -> None:
    engine = family()
    attempts = engine.state.having(Attempts)
    assert attempts is not None

    def shown() -> list[dict[str, Any]]:
        fields: Any = attempts.lambda_fields(0.0)["verifiers"]
        return list(fields[0]["models"])

    assert "family_verdicts" not in shown()[0]
    engine.play(told(engine, 1, 2.0), 1.0)
    assert [one["verdicts"] for one in shown()] == [0, 0, 0]
    assert [one.get("family_verdicts", 0) > 0 for one in shown()] == [True, True, False]
    assert [one.get("family_labels", 0) > 0 for one in shown()] == [True, True, False]


@pytest.mark.parametrize("count", [60, 300])
def test_what_others_told_counts_for_as_many_labels_as_they_had(count: int) -> None:
    known, sums = learned(5, count)
    own = SharedVerdicts(2)
    own.take({**sums.shareable(known)}, VerdictTable(2, NAMES))
    models = [{"model": name, "verdicts": 0} for name in NAMES]
    shown: Any = own.with_family_counts({"models": models})["models"]
    assert sum(one["family_labels"] for one in shown) == pytest.approx(count, rel=0.25)
