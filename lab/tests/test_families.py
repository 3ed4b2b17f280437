"""Families in the engine: members take over what others have learned, and nobody's own twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.families import OF_BROKEN, Job, one
from benchmarks.family_play import LABELS_LATE, Household, Player, play
from benchmarks.family_worlds import REQUESTS, broken, drawn
from router_state.families.family_evidence import own_sums


def test_newcomers_to_alike_tenants_earn_more_than_alone() -> None:
    found = one(Job("drawn", "in turn", 1, Path()), ("alone", "family"))
    alone, family = (
        np.mean([reward for reward, _ in found[how][3:]]) for how in ("alone", "family")
    )
    assert family > alone + 0.02


def test_a_tenant_that_is_not_there_is_not_measured() -> None:
    found = one(Job("drawn", "in turn", 2, Path(), broken="inverted"), OF_BROKEN)
    assert {len(rows) for rows in found.values()} == {9}
    # Those before the third one are the same, whoever comes after them.
    assert found["without"][:2] == found["unbroken"][:2] == found["family"][:2]


def test_who_is_alone_in_a_family_decides_as_without_one() -> None:
    tenants = drawn(3, unlike=0.0, tenants=1)
    alone, family = (play(tenants, how, "in turn")[0] for how in ("alone", "family"))
    assert alone.tolist() == family.tolist()


def test_own_sums_are_of_the_own_labels_alone() -> None:
    tenants = drawn(1, unlike=0.05, tenants=2)
    family = Household()
    for k, tenant in enumerate(tenants):
        player = Player(f"r{k}", tenant, family)
        for _ in range(REQUESTS):
            player.step()
    state, labelled = player.engine.state, REQUESTS - LABELS_LATE - 1
    member = player.member
    assert member is not None
    assert any(one.taken[0] and one.taken[0].count > 1.0 for one in member.outside_sums.values())
    gamma = state.config.knobs.gamma
    for k, arm in enumerate(state.arms):
        arm.rewards.forget(state.t, gamma)
        rows = np.flatnonzero(player.chosen[:labelled] == k)
        left = gamma ** (labelled - 1.0 - rows)
        X = tenant.contexts[rows]
        taken = member.outside_sums[arm.name].taken[0] if arm.name in member.outside_sums else None
        found = own_sums(arm.rewards, state.arms.rewards, taken)
        np.testing.assert_allclose(found.A, (X.T * left) @ X, atol=1e-5)
        np.testing.assert_allclose(found.b, X.T @ (left * tenant.rewards[rows, k]), atol=1e-5)


def test_only_the_broken_tenants_labels_change() -> None:
    whole = drawn(2, unlike=0.1)
    for how in ("inverted", "constant", "scale"):
        changed = [
            k
            for k, (a, b) in enumerate(zip(whole, broken(whole, 2, how), strict=True))
            if not np.array_equal(a.rewards, b.rewards)
        ]
        assert changed == [2]
