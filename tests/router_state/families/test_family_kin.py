"""The regression of a family, against the joint Gaussian that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.changes import Journal
from router_state.families.family_evidence import own_sums
from router_state.families.family_fit import fit
from router_state.families.family_kin import Kin
from router_state.families.family_statements import Members
from router_state.families.family_sums import Sums, bytes_of, sums_of
from router_state.families.outside_sums import Share
from router_state.kernel import Regression, SharedPrior, conclude_with
from router_state.learning.guess import COSTS, REWARDS, Guess

SEEDS = st.integers(0, 10**6)


def _drawn(
    seed: int,
    *,
    members: int = 6,
    models: int = 3,
    d: int = 3,
    n: int = 60,
    unlike: float = 0.05,
    levels: float = 0.0,
) -> dict[str, dict[str, Sums]]:
    """Draw the sums of members whose models differ by a deviation."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.0, 0.1, (models, d)) + 0.5 * np.eye(d)[-1]
    found: dict[str, dict[str, Sums]] = {}
    for r in range(members):
        level = levels * rng.normal()
        for a in range(models):
            own = theta[a] + unlike * rng.normal(size=d) + level * np.eye(d)[-1]
            X = np.column_stack([rng.normal(size=(n, d - 1)), np.ones(n)])
            y = X @ own + 0.3 * rng.normal(size=n)
            found.setdefault(f"r{r}", {})[f"m{a}"] = Sums(X.T @ X, X.T @ y)
    return found


@given(SEEDS, st.integers(2, 6), st.integers(1, 4))
def test_the_others_say_what_the_joint_gaussian_says(seed: int, members: int, d: int) -> None:
    of = _drawn(seed, members=members, models=1, d=d, n=5)
    kin = Kin(d, REWARDS)
    for name, sums in of.items():
        kin.replace(name, {}, sums)
    told = kin.prior_for("r0", of["r0"])["m0"]
    # Coefficients of the family, then of each router; r0 has seen nothing.
    prior = kin.models.diagonal(d)
    R, size = np.diag(kin.scatter_of("m0").diagonal(d)), (members + 1) * d
    precision, response = np.zeros((size, size)), np.zeros(size)
    precision[:d, :d], response[:d] = np.diag(prior), prior * kin.mean
    for k, name in enumerate(of, start=1):
        own = slice(k * d, (k + 1) * d)
        precision[:d, :d] += R
        precision[own, own] += R
        precision[:d, own] -= R
        precision[own, :d] -= R
        if name != "r0":
            precision[own, own] += of[name]["m0"].A
            response[own] += of[name]["m0"].b
    kept = np.arange(d, 2 * d)
    gone = np.setdiff1d(np.arange(size), kept)
    cross = precision[np.ix_(kept, gone)] @ np.linalg.inv(precision[np.ix_(gone, gone)])
    # A router that hears nothing has this prior itself.
    alone = np.diag(prior) @ np.linalg.inv(np.diag(prior) + R) @ R
    whole = precision[np.ix_(kept, kept)] - cross @ precision[np.ix_(gone, kept)]
    np.testing.assert_allclose(told.A, whole - alone, atol=1e-7)
    found = response[kept] - cross @ response[gone]
    np.testing.assert_allclose(told.b, found - alone @ kin.mean, atol=1e-7)


@given(SEEDS)
def test_what_a_router_says_itself_is_not_told_to_it(seed: int) -> None:
    of = _drawn(seed)
    one, other = Kin(3, REWARDS), Kin(3, REWARDS)
    for name, sums in of.items():
        one.replace(name, {}, sums)
        other.replace(name, {}, sums)
    changed = {m: Sums(9 * s.A, -s.b) for m, s in of["r1"].items()}
    other.replace("r1", of["r1"], changed)
    for model in of["r1"]:
        first, second = one.prior_for("r1", of["r1"])[model], other.prior_for("r1", changed)[model]
        np.testing.assert_allclose(first.A, second.A, atol=1e-8)
        np.testing.assert_allclose(first.b, second.b, atol=1e-8)


def _estimated(of: Members, *, noise: float = 0.09, rounds: int = 40) -> Kin:
    kin = Kin(3, REWARDS)
    fit(kin, of, noise=noise, rounds=rounds)
    return kin


@pytest.mark.parametrize("unlike", [0.02, 0.1, 0.4])
def test_the_scatter_is_found_where_there_are_many_members(unlike: float) -> None:
    found = []
    for seed in range(5):
        kin = _estimated(_drawn(seed, members=30, n=200, unlike=unlike))
        found += [(0.09 / one.bias) ** 0.5 for one in kin.scatter.values()]
    assert unlike / 1.5 < np.median(found) < unlike * 1.5


def test_the_interval_of_the_scatter_holds_it_and_is_narrower_with_more_members() -> None:
    held, widths = [], []
    for members in (4, 30):
        of = [_drawn(seed, members=members, models=8, n=100, unlike=0.15) for seed in range(3)]
        found = [kin.apart(name) for kin in map(_estimated, of) for name in kin.scatter]
        # A member's level takes the mean over its models out.
        held += [low <= 0.15 * (1 - 1 / 8) ** 0.5 <= high for _, low, high in found]
        widths.append(np.median([high / low for _, low, high in found]))
    assert np.mean(held) > 0.8 and widths[1] < 2.0 < widths[0]


def test_alike_members_are_pooled_and_unlike_ones_are_not() -> None:
    alike, unlike = (_estimated(_drawn(1, members=20, unlike=tau)) for tau in (0.0, 0.5))
    counts = []
    for kin in (alike, unlike):
        counts.append(kin.prior_for("r0", {})["m0"].count)
    assert counts[0] > 30.0
    assert counts[1] < 3.0


def test_levels_of_members_do_not_count_as_scatter_of_models() -> None:
    kin = _estimated(_drawn(3, members=20, models=6, n=200, unlike=0.02, levels=0.15))
    assert np.median([(0.09 / one.bias) ** 0.5 for one in kin.scatter.values()]) < 0.05
    assert 0.08 < np.std(list(kin.levels.values())) < 0.25


@pytest.mark.parametrize("how", ["inverted", "constant", "scale"])
def test_a_member_with_broken_labels_counts_for_little(how: str) -> None:
    of = _drawn(5, members=10, models=6, n=100, unlike=0.03)
    for model, sums in of["r3"].items():
        b = {"inverted": sums.A[-1] - sums.b, "constant": sums.A[-1], "scale": 0.1 * sums.b}[how]
        of["r3"][model] = Sums(sums.A, b)
    whole = _estimated(of)
    without = _estimated({name: sums for name, sums in of.items() if name != "r3"})
    assert whole.aside == {"r3"}
    for model in of["r3"]:
        first, second = (kin.prior_for("r0", of["r0"])[model] for kin in (whole, without))
        moved = np.linalg.solve(first.A, first.b) - np.linalg.solve(second.A, second.b)
        assert abs(moved[-1]) < 0.03
    # It comes back when it fits again.
    of["r3"] = _drawn(5, members=10, models=6, n=100, unlike=0.03)["r3"]
    fit(whole, of, noise=0.09, rounds=20)
    assert whole.aside == set()


@pytest.mark.parametrize(("members", "models"), [(3, 3), (4, 2)])
def test_who_is_left_out_does_not_come_and_go(members: int, models: int) -> None:
    for seed in range(30):
        of = _drawn(seed, members=members, models=models)
        of["r1"] = {name: Sums(one.A, one.A[-1] - one.b) for name, one in of["r1"].items()}
        kin = Kin(3, REWARDS)
        fit(kin, of, noise=0.09, rounds=10)
        before = set(kin.aside)
        for _ in range(8):
            fit(kin, of, noise=0.09, rounds=1)
            assert kin.aside == before


@given(SEEDS, st.integers(2, 4), st.sampled_from([REWARDS, COSTS]))
def test_own_sums_are_those_of_its_own_observations(seed: int, d: int, guess: Guess) -> None:
    rng = np.random.default_rng(seed)
    prior = SharedPrior("p", d, guess, Journal())
    ones = [Regression(f"m{k}", d, Journal()) for k in range(3)]
    for one in ones:
        one.know_only(prior.ridge, prior.bias_ridge, prior.mean)
    own = [Sums.none(d) for _ in ones]
    taken: list[Share | None] = [None] * len(ones)
    t = 0
    for turn in range(3):
        for k, one in enumerate(ones):
            for _ in range(int(rng.integers(0, 6))):
                t += 1
                left = 0.99 ** (t - one.last_update)
                one.forget(t, 0.99)
                x, y = np.append(rng.normal(size=d - 1), 1.0), float(rng.random())
                one.observe(x, y)
                own[k] = Sums(left * own[k].A + np.outer(x, x), left * own[k].b + y * x)
        for k, one in enumerate(ones):
            found = own_sums(one, prior, taken[k])
            np.testing.assert_allclose(found.A, own[k].A, atol=1e-6)
            np.testing.assert_allclose(found.b, own[k].b, atol=1e-6)
        if turn < 2:
            added = []
            for k, one in enumerate(ones):
                half = rng.normal(size=(d, d))
                data, before = bytes_of(Sums(half @ half.T, rng.normal(size=d))), taken[k]
                told = sums_of(data, d)
                net = told if before is None else told.less(before.left(one))
                added.append(net.triangle())
                taken[k] = Share.taken(data, one)
            conclude_with(prior, ones, added)


@given(SEEDS)
def test_what_is_taken_over_counts_as_evidence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior, other = (SharedPrior("p", 3, REWARDS, Journal()) for _ in range(2))
    added, plain = (Regression("m", 3, Journal()) for _ in range(2))
    half = rng.normal(size=(3, 3))
    told = Sums(half @ half.T + np.eye(3), rng.normal(size=3))
    added.know_only(prior.ridge, prior.bias_ridge, prior.mean)
    conclude_with(prior, [added], [told.triangle()])
    plain.know_only(other.ridge, other.bias_ridge, other.mean)
    plain.start(told.A + np.diag(other.ridges), told.b + other.ridges * other.mean)
    np.testing.assert_allclose(
        added.A() - np.diag(prior.ridges), plain.A() - np.diag(other.ridges), atol=1e-7
    )
