"""What a router holds of a pool paces it as a budget of its own would, to the bit; what a pool
says twice, late, or to somebody else changes nothing.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from benchmarks.played import Played
from router_state.changes import CONFIG, HEAD, Outcome
from router_state.errors import BudgetSpent
from router_state.events import Asked
from router_state.packing.framing import body_of
from router_state.periods.holdings import Grant, Granted, Lapsed
from router_state.periods.ledger import PIECE
from router_state.periods.reporting import Reported
from router_state.periods.spending import PeriodBudget, Spending
from router_state.since import steps_of
from router_state.state.restoring import unpack
from router_state.state.state_pieces import pack_piece, pack_pieces
from tests.router_state.core_reference import context
from tests.router_state.periods.ledgers import ledger_of, reported
from tests.router_state.periods.test_period_money import DAY, MONDAY, config, router, serve

FAR = MONDAY + 30.0 * DAY


def of_line(
    usd: float, *, until: float = FAR, line: str = "shop/day", begin: float = MONDAY
) -> Grant:
    return Grant(line, "day", "UTC", None, None, begin, begin + DAY, usd, until)


def grant(n: int, *lines: Grant, born: int = 0, pool: str = "shop") -> Granted:
    return Granted(pool, born, n, lines)


def member(*lines: Grant, **more: Any) -> Played:
    """Return a router of a pool that has these grants."""
    engine = router(Spending(pool="shop", **more))
    if lines:
        engine.apply(grant(1, *lines, born=ledger_of(engine).holdings.born), MONDAY)  # type: ignore[union-attr]
    return engine


def born(engine: Played) -> int:
    leases = ledger_of(engine).holdings
    assert leases is not None
    return leases.born


def report(engine: Played, now: float, **more: Any) -> Reported:
    found = reported(engine.state, "r", now=now, **more)
    assert found is not None
    return found


TIMES = [MONDAY + 60.0 * k for k in range(300)]


def test_a_lease_paces_as_a_budget_does_to_the_bit() -> None:
    own, leased = router(Spending((PeriodBudget(0.2, "day"),))), member(of_line(0.2))
    assert serve(own, TIMES) == serve(leased, TIMES)
    for one, other in zip(own.records.values(), leased.records.values(), strict=True):
        assert replace_config(one) == replace_config(other)
    ours, theirs = pack_pieces(own.state), pack_pieces(leased.state)
    assert ours.keys() == theirs.keys()
    differing = {name for name in ours if ours[name] != theirs[name]}
    assert differing <= {PIECE, CONFIG, HEAD}


def replace_config(record: Any) -> Any:
    return (record.seq, record.model, record.lambda_t, record.propensity, record.expected_cost_usd)


def test_without_a_pool_no_lease_is_written() -> None:
    engine = router(Spending((PeriodBudget(0.2, "day"),)))
    serve(engine, TIMES[:50])
    packed = orjson.loads(body_of(pack_piece(engine.state, PIECE) or b""))
    assert packed.keys() == {"budgets", "traffic", "numbers"}
    assert [len(account) for _, kept in packed["budgets"] for account in kept] == [7]


def test_only_the_newest_grant_of_this_membership_counts() -> None:
    engine = member(of_line(1.0))
    for late in (
        grant(1, of_line(9.0), born=born(engine)),
        grant(5, of_line(9.0), born=born(engine) + 1),
        grant(5, of_line(9.0), born=born(engine), pool="other"),
    ):
        assert engine.apply(late, MONDAY).outcome is Outcome.DUPLICATE
    assert [one.usd for one in ledger_of(engine).standings(MONDAY, seq=1)] == [1.0]
    engine.apply(grant(3, of_line(2.0), born=born(engine)), MONDAY)
    assert [one.usd for one in ledger_of(engine).standings(MONDAY, seq=1)] == [2.0]


def test_before_a_lease_and_after_its_time_nothing_may_be_spent() -> None:
    waiting = member(when_spent="refuse")
    with pytest.raises(BudgetSpent, match="of the budget"):
        waiting.decide("a", context(0.1, 0.2, 0.3), now=MONDAY)
    assert waiting.take_alerts() == []
    engine = member(of_line(1.0, until=MONDAY + 100.0), when_spent="refuse")
    engine.decide("a", context(0.1, 0.2, 0.3), now=MONDAY + 99.0)
    with pytest.raises(BudgetSpent):
        engine.decide("b", context(0.1, 0.2, 0.3), now=MONDAY + 100.0)
    engine.apply(grant(2, of_line(1.0), born=born(engine)), MONDAY + 101.0)
    engine.decide("b", context(0.1, 0.2, 0.3), now=MONDAY + 102.0)


def test_what_was_spent_before_the_first_lease_is_charged_to_it() -> None:
    engine = member()
    serve(engine, TIMES[:5], late=0)
    spent = engine.state.spend_usd
    assert spent > 0.0
    engine.apply(grant(1, of_line(1.0), born=born(engine)), TIMES[5])
    (standing,) = ledger_of(engine).standings(TIMES[5], seq=6)
    assert standing.account.charged_usd == pytest.approx(spent)
    assert standing.account.count == 5
    # Of another day's spend the lease knows nothing.
    late = member()
    serve(late, TIMES[:5], late=0)
    late.apply(grant(1, of_line(1.0, begin=MONDAY + DAY), born=born(late)), MONDAY + DAY)
    (standing,) = ledger_of(late).standings(MONDAY + DAY, seq=6)
    assert standing.account.charged_usd == 0.0


def test_a_budget_that_the_pool_has_no_more_limits_nobody() -> None:
    engine = member(of_line(0.0), of_line(1.0, line="org/day"), when_spent="refuse")
    with pytest.raises(BudgetSpent):
        engine.decide("a", context(0.1, 0.2, 0.3), now=MONDAY)
    engine.apply(grant(2, of_line(1.0, line="org/day"), born=born(engine)), MONDAY)
    engine.decide("a", context(0.1, 0.2, 0.3), now=MONDAY)
    assert [one.accounts.name for one in ledger_of(engine).standings(MONDAY, seq=2)] == ["org/day"]


def test_a_report_says_what_is_held_and_spent_and_wanted() -> None:
    engine = member(of_line(0.2, until=MONDAY + 20_000.0))
    serve(engine, TIMES)
    found = report(engine, TIMES[-1])
    (held,) = found.lines
    assert held.holds_usd == 0.2
    assert 0.0 < held.spent_usd <= 0.2
    usd = [dollars for _, dollars in held.curve]
    assert usd == sorted(usd, reverse=True)
    assert usd[0] > usd[-1] > 0.0
    # When its time is up it holds what it has spent, and so it does when it leaves.
    for ended in (report(engine, MONDAY + 20_000.0), report(engine, TIMES[-1], left=True)):
        assert ended.lines[0].holds_usd == ended.lines[0].spent_usd == held.spent_usd
    assert reported(router(Spending()).state, "r", now=MONDAY) is None


def test_leases_survive_what_state_survives() -> None:
    engine = member(of_line(0.2), of_line(0.3, begin=MONDAY + DAY))
    serve(engine, TIMES[:40])
    pieces = pack_pieces(engine.state)
    state = unpack(pieces.get, engine.state.open_commitments)
    again = Played(state, dict(engine.records))
    assert pack_piece(again.state, PIECE) == pack_piece(engine.state, PIECE)
    assert report(again, TIMES[40]) == report(engine, TIMES[40])
    assert again.state.since.text() == engine.state.since.text()


def test_a_router_that_leaves_its_pool_is_not_limited_by_it() -> None:
    engine = member(of_line(0.0), when_spent="refuse")
    engine.configure(config(Spending(when_spent="refuse")), now=MONDAY)
    engine.decide("a", context(0.1, 0.2, 0.3), now=MONDAY)
    assert reported(engine.state, "r", now=MONDAY) is None


def test_a_lease_that_was_given_back_stays_so_when_the_clock_steps_back() -> None:
    engine = member(of_line(1.0, until=MONDAY + 600.0), when_spent="refuse")
    first = engine.apply(Asked("a", context(0.0, 0.0, 0.0)), MONDAY + 1.0)
    assert first.decision is not None
    assert engine.apply(Lapsed(), MONDAY + 599.0).outcome is Outcome.DUPLICATE
    moves = report(engine, MONDAY + 599.0).moves
    changes = engine.apply(Lapsed(), MONDAY + 700.0)
    assert PIECE in changes.pieces
    assert report(engine, MONDAY + 2.0).moves > moves
    pieces = pack_pieces(engine.state)
    again = unpack(pieces.get, engine.state.open_commitments)
    for state in (engine.state, again):
        found = reported(state, "r", now=MONDAY + 2.0)
        assert found is not None
        assert found.lines[0].holds_usd == found.lines[0].spent_usd < 1.0
    refused = engine.apply(Asked("b", context(1.0, 0.0, 0.0)), MONDAY + 2.0)
    assert isinstance(refused.refusal, BudgetSpent)
    # What is granted anew may be spent.
    engine.apply(grant(2, of_line(1.0, until=MONDAY + 900.0), born=born(engine)), MONDAY + 3.0)
    assert engine.apply(Asked("b", context(1.0, 0.0, 0.0)), MONDAY + 3.0).decision is not None
    (step,) = steps_of(engine.state.since.led_to(2) or "") or ()
    assert (step.kind, step.time) == ("e", MONDAY + 700.0)


@pytest.mark.parametrize("why", ["no period", "no owner", "an earlier owner"])
def test_a_grant_that_is_refused_changes_nothing(why: str) -> None:
    engine = router(Spending(pool="shop"))
    first = Granted("shop", born(engine), 1, (of_line(1.0),), epoch=4)
    assert engine.apply(first, MONDAY).outcome is Outcome.APPLIED
    before = pack_pieces(engine.state)
    wrong = Grant("shop/day", "day", "UTC", None, FAR, MONDAY, MONDAY + DAY, 9.0, FAR)
    lines = (of_line(9.0), wrong) if why == "no period" else (of_line(9.0),)
    epoch = {"no period": 4, "no owner": -1, "an earlier owner": 3}[why]
    changes = engine.apply(Granted("shop", born(engine), 2, lines, epoch=epoch), MONDAY)
    assert changes.outcome is Outcome.REFUSED
    assert pack_pieces(engine.state) == before
    # What its pool says next is taken.
    after = Granted("shop", born(engine), 2, (of_line(2.0),), epoch=5)
    assert engine.apply(after, MONDAY).outcome is Outcome.APPLIED
