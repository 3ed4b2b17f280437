"""Pools: leases add up, go where a dollar earns most, and are never more than the pool."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.console.failures import Failure
from doors.pools.file import Pools, read_pools
from doors.pools.keeping import lease_in, with_lease
from doors.pools.leases import Holding, changed, leases_of
from doors.pools.sharing import Member, Standing, share
from tests.unit.test_cli_views import NOON, state
from tests.unit.test_cli_views import standing as period

amounts = st.floats(0.0, 1e6)
standings = st.none() | st.builds(
    Standing,
    charged_usd=amounts,
    price=st.sampled_from([0.0, 1e-3, 1.0, 50.0, 1e9]),
    wanted_usd=amounts | st.just(math.inf),
    requests=st.floats(0.0, 1e6),
)
pairs = st.tuples(st.floats(0.0, 0.25), st.floats(0.25, 1.0))


def members(parts: list[tuple[float, tuple[float, float], Standing | None]]) -> list[Member]:
    return [
        Member(f"m{k}", lease, low / len(parts), high, standing)
        for k, (lease, (low, high), standing) in enumerate(parts)
    ]


@given(st.floats(0.0, 1e7), st.lists(st.tuples(amounts, pairs, standings), min_size=1, max_size=8))
def test_leases_are_never_more_than_the_pool_or_what_is_charged_already(
    total: float, parts: list[tuple[float, tuple[float, float], Standing | None]]
) -> None:
    found = members(parts)
    leases = share(total, found)
    unknown = sum(m.lease_usd for m in found if m.standing is None)
    charged = sum(m.charged_usd for m in found)
    assert leases.keys() == {m.name for m in found}
    assert sum(leases.values()) <= max(total, unknown + charged) * (1.0 + 1e-9) + 1e-6
    for member in found:
        if member.standing is None:
            assert leases[member.name] == member.lease_usd
        else:
            # What was spent can't be taken back.
            assert leases[member.name] >= member.charged_usd - 1e-6


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0, 100.0]), min_size=2, max_size=6))
def test_one_round_leaves_every_member_half_of_what_it_has(prices: list[float]) -> None:
    parts = [
        Member(f"m{k}", 10.0, standing=Standing(4.0, price, 1.0, 100.0))
        for k, price in enumerate(prices)
    ]
    leases = share(10.0 * len(prices), parts)
    assert all(lease >= 7.0 - 1e-6 for lease in leases.values())


def test_money_goes_where_a_dollar_earns_more_until_it_earns_the_same() -> None:
    """With prices 1/x and 4/x of what a member has, 1 and 4 parts in 5 are equal prices."""
    leases = {"small": 50.0, "large": 50.0}
    for _ in range(30):
        found = [
            Member(name, lease, standing=Standing(0.0, weight / lease, math.inf, 100.0))
            for (name, lease), weight in zip(leases.items(), (1.0, 4.0), strict=True)
        ]
        leases = share(100.0, found)
    assert leases["small"] == pytest.approx(20.0, rel=0.02)
    assert sum(leases.values()) == pytest.approx(100.0, abs=1e-5)


def test_shares_stay_between_what_is_guaranteed_and_what_is_allowed() -> None:
    rich = Member("rich", 50.0, most=0.6, standing=Standing(0.0, 100.0, math.inf, 1.0))
    poor = Member("poor", 50.0, least=0.45, standing=Standing(0.0, 0.01, math.inf, 1.0))
    for _ in range(10):
        leases = share(100.0, [rich, poor])
        rich, poor = (
            Member(m.name, leases[m.name], m.least, m.most, m.standing) for m in (rich, poor)
        )
    assert rich.lease_usd == pytest.approx(55.0)
    assert poor.lease_usd == pytest.approx(45.0)


def test_a_member_that_does_not_spend_what_it_has_gives_it_back() -> None:
    idle = Member("idle", 80.0, standing=Standing(1.0, 0.0, 5.0, 10.0))
    busy = Member("busy", 20.0, standing=Standing(1.0, 2.0, 500.0, 10.0))
    for _ in range(8):
        leases = share(100.0, [idle, busy])
        idle, busy = (Member(m.name, leases[m.name], standing=m.standing) for m in (idle, busy))
    assert idle.lease_usd == pytest.approx(6.0, abs=0.1)
    assert busy.lease_usd == pytest.approx(94.0, abs=0.1)


NOW = NOON.timestamp()
TREE = Pools.model_validate(
    {
        "pools": {
            "shop": {
                "usd": 100.0,
                "per": "month",
                "members": {"chat": {"min": 0.2}, "team": {"max": 0.7}},
            },
            "team": {"members": {"search": {}, "mail": {}}},
        }
    }
)


def test_the_first_leases_are_even_by_level() -> None:
    leases = leases_of(
        TREE, "shop", {name: Holding(0.0, None) for name in TREE.routers("shop")}, now=NOW
    )
    assert leases["search"] == leases["mail"]
    assert sum(leases.values()) == pytest.approx(100.0, abs=1e-5)


def test_two_levels_keep_to_the_pool_and_follow_the_price_of_a_dollar() -> None:
    holdings = {
        name: Holding(
            lease,
            state(
                lambda_t=price,
                budget_usd_per_request=1e-3,
                budgets=(period(usd=lease, charged_usd=10.0, reserved_usd=0.0),),
            ),
        )
        for name, lease, price in (("chat", 40.0, 1.0), ("search", 30.0, 4.0), ("mail", 30.0, 0.1))
    }
    leases = leases_of(TREE, "shop", holdings, now=NOW)
    assert sum(leases.values()) <= 100.0 + 1e-9
    assert leases["search"] > 30.0 > leases["mail"]
    assert leases["search"] + leases["mail"] <= 70.0 + 1e-6
    # A month later nobody has said anything of it: leases stay.
    later = leases_of(TREE, "shop", holdings, now=NOW + 31 * 86_400.0)
    assert later == {name: one.lease_usd for name, one in holdings.items()}
    order = changed({name: one.lease_usd for name, one in holdings.items()}, leases)
    moves = [usd - holdings[name].lease_usd for name, usd in order]
    assert moves == sorted(moves)


def test_a_lease_is_the_budget_of_its_period_and_leaves_the_others() -> None:
    day = {"usd": 5.0, "per": "day"}
    document = {"router_id": "a", "budget": day}
    leased = with_lease(document, 7.5, per="month", timezone="Europe/Berlin")
    assert leased["budget"] == [day, {"usd": 7.5, "per": "month", "timezone": "Europe/Berlin"}]
    assert (lease_in(leased, "month"), lease_in(document, "month")) == (7.5, 0.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pools: {a: {members: {r: {}}}}", "needs usd and per"),
        ("pools: {a: {usd: 1, members: {r: {}}}}", "needs usd and per"),
        ("pools: {a: {usd: 1, per: day, members: {r: {min: 0.6}, s: {min: 0.6}}}}", "at least"),
        ("pools: {a: {usd: 1, per: day, members: {r: {min: 0.6, max: 0.5}}}}", "above max"),
        (
            "pools: {a: {usd: 1, per: day, members: {r: {}}}, "
            "b: {usd: 1, per: day, members: {r: {}}}}",
            "member of a and of b",
        ),
        ("pools: {a: {members: {b: {}}}, b: {members: {a: {}}}}", "within itself"),
        ("pools: {a: {usd: 1, per: day, members: {}}}", "at least 1"),
        ("pools: {a: {usd: 1, per: day, members: {r: {}}, wrong: 1}}", "wrong"),
        ("[", "no YAML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(text)
    with pytest.raises(Failure, match=says):
        read_pools(path)
