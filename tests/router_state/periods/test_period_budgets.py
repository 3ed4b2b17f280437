"""Budgets of a period as a capability of a router: it comes and goes, and says how it stands."""

from __future__ import annotations

import pytest

from router_state.caps.bucket import Bucket, Cap
from router_state.caps.caps import Caps
from router_state.changes import Outcome
from router_state.config import RouterConfig
from router_state.engine import Engine
from router_state.errors import BudgetSpent
from router_state.events import Asked, Event, OfCapability, Redeclared
from router_state.pacing.dollar_dual import DollarDual
from router_state.periods.holdings import Lapsed
from router_state.periods.hourly_traffic import SHAPE
from router_state.periods.ledger import PIECE
from router_state.periods.period_budgets import Periods
from router_state.periods.period_dual import PeriodDual
from router_state.periods.spending import PeriodBudget, Spending
from router_state.state.state_pieces import pack_piece, piece_names
from tests.router_state.core_reference import context
from tests.router_state.periods.ledgers import declaring
from tests.router_state.periods.test_period_money import MONDAY, config, router

DAY = PeriodBudget(1.0, "day")
FLOOR = Spending((DAY,), min_reward=0.5)


class Foreign(OfCapability, frozen=True):
    """An event of a capability that the router does not have."""


def standing(engine: Engine) -> dict[str, object]:
    periods = engine.state.having(Periods)
    return {} if periods is None else periods.lambda_fields(MONDAY)


def ask(engine: Engine, name: str) -> None:
    asked = engine.apply(Asked(name, context(1.0, 0.0, 0.0)), MONDAY)
    assert asked.decision is not None


def redeclare(engine: Engine, declared: RouterConfig) -> frozenset[str]:
    changes = engine.apply(Redeclared(declared), MONDAY)
    assert changes.refusal is None
    return frozenset(changes.pieces)


def test_a_router_without_budgets_of_a_period_has_no_object_and_no_piece_of_them() -> None:
    engine = router(Spending((DAY,)), 0.001)
    ask(engine, "a")
    assert {PIECE, SHAPE} <= set(piece_names(engine.state))
    assert isinstance(engine.state.pacer, PeriodDual)
    gone = redeclare(engine, declaring(engine.state.config, None))
    assert {PIECE, SHAPE} <= gone
    assert engine.state.having(Periods) is None and pack_piece(engine.state, PIECE) is None
    assert not {PIECE, SHAPE} & set(piece_names(engine.state))
    assert type(engine.state.pacer) is DollarDual
    # What comes again begins anew.
    redeclare(engine, declaring(engine.state.config, Spending((DAY,))))
    periods = engine.state.having(Periods)
    assert periods is not None and periods.ledger.decided == 0.0
    assert engine.state.pacer is periods.dual


def test_a_limit_of_single_calls_leaves_the_price_of_a_dollar_to_others() -> None:
    engine = router(Spending(max_cost_per_request_usd=1.0), 0.001)
    assert type(engine.state.pacer) is DollarDual and standing(engine) == {}


@pytest.mark.parametrize("event", [Foreign(), Lapsed()])
def test_an_event_of_a_capability_that_is_not_there_changes_nothing(event: Event) -> None:
    engine = router(Spending((DAY,)))
    engine.started()
    changes = engine.apply(event, MONDAY)
    assert changes.outcome is Outcome.DUPLICATE
    assert not changes.pieces and changes.refusal is None


def test_a_floor_stands_from_the_first_decision_under_it() -> None:
    """Means of no decision are no rewards of 0."""
    engine = router(Spending((DAY,)))
    redeclare(engine, declaring(engine.state.config, None))
    ask(engine, "a")
    redeclare(engine, declaring(engine.state.config, FLOOR))
    assert "floor" not in standing(engine)
    ask(engine, "b")
    floor = standing(engine)["floor"]
    assert isinstance(floor, dict) and floor["expected_reward"] > 0.0


def test_a_refusal_for_want_of_money_leaves_caps_as_they_were() -> None:
    """A cap is refilled up to a request that was decided, so that a replay finds it the same."""
    declared = config(Spending((PeriodBudget(0.0, "day"),), "refuse"))
    declared = RouterConfig(
        declared.models,
        dimensions=declared.dimensions,
        knobs=declared.knobs,
        capabilities={**declared.capabilities, "caps": (Cap(1.0, 3600.0),)},
    )
    engine = Engine.start(declared)
    caps = engine.state.having(Caps)
    assert caps is not None
    caps.buckets = [Bucket(Cap(1.0, 3600.0), 0.5, MONDAY - 60.0)]
    refused = engine.apply(Asked("a", context(1.0, 0.0, 0.0)), MONDAY)
    assert isinstance(refused.refusal, BudgetSpent)
    assert caps.buckets == [Bucket(Cap(1.0, 3600.0), 0.5, MONDAY - 60.0)]
