"""What is left of the periods of a router under test."""

from __future__ import annotations

from dataclasses import replace

from router_state.config import RouterConfig
from router_state.engine import Engine
from router_state.periods.ledger import Ledger
from router_state.periods.period_budgets import Periods
from router_state.periods.reporting import Reported
from router_state.periods.spending import Spending
from router_state.router import RouterState


def declaring(config: RouterConfig, declared: Spending | None) -> RouterConfig:
    """Return a declaration with these budgets of a period, None: without any."""
    others = {name: one for name, one in config.capabilities.items() if name != Periods.name}
    mine = {} if declared is None else {Periods.name: declared}
    return replace(config, capabilities=others | mine)


def kept(engine: Engine) -> Ledger | None:
    """Return a router's ledger, if it has one."""
    periods = engine.state.having(Periods)
    return None if periods is None else periods.ledger


def ledger_of(engine: Engine) -> Ledger:
    """Return a router's ledger."""
    ledger = kept(engine)
    assert ledger is not None
    return ledger


def reported(
    state: RouterState, router_id: str, *, now: float, left: bool = False
) -> Reported | None:
    """Return a router's report to its pool."""
    periods = state.having(Periods)
    return None if periods is None else periods.reported(router_id, now=now, left=left)
