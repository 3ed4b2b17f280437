"""Bring a router's arms and budget in line with its declaration."""

from __future__ import annotations

from dataclasses import replace

from router_state import caps, cost_priors, warm_start
from router_state.accounts import cost_piece
from router_state.config import CostPrior, ModelConfig, RouterConfig
from router_state.dual import EVERY, DualPacer
from router_state.errors import InvalidConfig
from router_state.pacing import EmaPacer
from router_state.state import RouterState


def declare(state: RouterState, config: RouterConfig, *, now: float) -> None:
    """Put `config` in force: new models join, missing ones retire, prices and budget change; what was learned stays.

    A model that comes back while its last requests are still remembered goes on with what it knew.

    Raises:
        InvalidConfig: another number of dimensions, or a prior that does not fit; nothing has changed.
    """
    arms = state.arms
    before = _terms(state)
    if config.dimensions != arms.d:
        raise InvalidConfig(
            f"the router has {arms.d} dimensions and can't change to {config.dimensions}: declare another router_id"
        )
    joining = {name: model for name, model in config.models.items() if name not in arms.row}
    starts = {name: warm_start.statistics_for(model.prior, arms=arms, knobs=config.knobs) for name, model in joining.items()}
    costs = {name: _cost_prior(model, arms.d) for name, model in joining.items() if model.cost_prior is not None}
    for k, name in enumerate(arms.names):
        declared = config.models.get(name)
        if declared is None:
            if arms.retired_at[k] is None:
                arms.retired_at[k] = now
                arms.pulls_left[k] = 0
            continue
        arms.retired_at[k] = None
        if arms.price[k] != declared.price:
            arms.reprice(k, declared.price)
            state.touched.add(cost_piece(name))
    for name, model in joining.items():
        A, b = starts[name]
        state.touched.update((name, cost_piece(name)))
        arms.add(name, price=model.price, A=A, b=b, now_t=state.t, pulls=onboarding_pulls(model, config))
        if name in costs:
            cost_priors.start(arms, len(arms) - 1, costs[name])
        elif model.expected_cost_usd is not None and model.price.per_1k > 0.0:
            arms.expect(len(arms) - 1, ratio=model.expected_cost_usd / model.price.per_1k)
    arms.derive()
    state.config = config
    state.buckets = caps.declare(state.buckets, config.caps, now=now)
    set_budget(state, config.budget_usd_per_request)
    if isinstance(state.pacer, DualPacer) and _terms(state) != before:
        state.pacer.stale = EVERY


def _cost_prior(model: ModelConfig, d: int) -> CostPrior:
    """Return a joining model's cost prior; the mean that is declared wins over the prior's."""
    assert model.cost_prior is not None
    prior, mean = cost_priors.checked(model.cost_prior, d=d), model.expected_cost_usd
    return prior if mean is None else replace(prior, mean_usd=mean)


def _terms(state: RouterState) -> tuple[object, ...]:
    """Return what the dual variable depends on in the declaration: where it differs λ_t follows before the next decision."""
    arms = state.arms
    return state.config.budget_usd_per_request, arms.names, tuple(arms.price), [at is None for at in arms.retired_at]


def onboarding_pulls(model: ModelConfig, config: RouterConfig) -> int:
    """Return how often a joining model is called before its score decides: by default only if nothing is known of it."""
    if model.onboarding_pulls is not None:
        return model.onboarding_pulls
    return config.knobs.onboarding_pulls if model.prior is None else 0


def set_budget(state: RouterState, budget_usd_per_request: float | None) -> None:
    """Start, keep or stop pacing. What is owed in dollars stays owed."""
    kind = DualPacer if state.config.knobs.dollar_dual else EmaPacer
    if budget_usd_per_request is None:
        state.pacer = None
    elif not isinstance(state.pacer, kind):
        dual = kind is DualPacer
        state.pacer = DualPacer.start(state.arms.d) if dual else EmaPacer.start(budget_usd_per_request)


def drop_retired(state: RouterState, *, before: float) -> None:
    """Forget arms that retired before this time (seconds since the epoch)."""
    arms = state.arms
    gone = [k for k, at in enumerate(arms.retired_at) if at is not None and at < before]
    state.touched.update(piece for k in gone for piece in (arms.names[k], cost_piece(arms.names[k])))
    for k in reversed(gone):
        arms.remove(k)
