"""Bring a router's arms and budget in line with its declaration."""

from __future__ import annotations

from dataclasses import replace

from router_state.arms import Arms
from router_state.config import CostPrior, ModelConfig, RouterConfig
from router_state.costs import believed
from router_state.errors import InvalidConfig
from router_state.learning.offline_sums import require_invertible
from router_state.policies.profiles import POLICIES
from router_state.state import caps
from router_state.state.router import RouterState


def declare(state: RouterState, config: RouterConfig, *, now: float) -> None:
    """Put `config` in force: new models join, missing ones retire, prices and budget change; what
    was learned stays.

    A model that comes back while its last requests are still remembered goes on with what it knew.

    Raises:
        InvalidConfig: another number of dimensions, or a prior that does not fit; nothing has
            changed.
    """
    arms, policy = state.arms, POLICIES[config.profile]
    if config.dimensions != arms.d:
        raise InvalidConfig(
            f"the router has {arms.d} dimensions and can't change to {config.dimensions}: declare "
            "another router_id"
        )
    joining = {name: model for name, model in config.models.items() if name not in arms.row}
    # All of them before the first one joins: a prior that does not fit changes nothing, and none
    # starts from another newcomer.
    starts = {
        name: policy.statistics(state, config.knobs, name, model.prior)
        for name, model in joining.items()
    }
    for name, model in joining.items():
        if model.prior is not None:
            require_invertible(f"the prior of {name!r}", starts[name][0])
    costs = {
        name: _cost_prior(name, model, arms)
        for name, model in joining.items()
        if model.cost_prior is not None
    }
    for arm in arms:
        declared = config.models.get(arm.name)
        if declared is None:
            if arm.retired_at is None:
                arms.retire(arm, now=now)
            continue
        if arm.retired_at is not None:
            arms.reopen(arm)
        if arm.price != declared.price:
            arms.reprice(arm, declared.price)
    for name, model in joining.items():
        A, b = starts[name]
        arm = arms.add(
            name, price=model.price, A=A, b=b, now_t=state.t, pulls=onboarding_pulls(model, config)
        )
        believed.start(
            arm.costs, costs.get(name), model.expected_cost_usd, tokens=arms.tokens.usual
        )
    if joining:
        policy.joined(state, list(joining))
    state.buckets = caps.declare(state.buckets, config.caps, now=now)
    state.put_in_force(config, policy.pacer(state, config), policy.chance(state, config))


def _cost_prior(name: str, model: ModelConfig, arms: Arms) -> CostPrior:
    """Return a joining model's cost prior; the mean that is declared wins over the prior's."""
    prior, mean = model.cost_prior, model.expected_cost_usd
    assert prior is not None
    prior = prior if mean is None else replace(prior, mean_usd=mean)
    return believed.checked(name, prior, price=model.price, bills=arms.bills)


def onboarding_pulls(model: ModelConfig, config: RouterConfig) -> int:
    """Return how often a joining model is called before its score decides: by default only if
    nothing is known of it."""
    if model.onboarding_pulls is not None:
        return model.onboarding_pulls
    return config.knobs.onboarding_pulls if model.prior is None else 0


def drop_retired(state: RouterState, *, before: float) -> bool:
    """Forget arms that retired before this time (seconds since the epoch); tell whether there were
    any."""
    gone = [
        arm.name for arm in state.arms if arm.retired_at is not None and arm.retired_at < before
    ]
    for name in gone:
        state.arms.remove(name)
    if gone:
        state.since.dropped(before)
    return bool(gone)
