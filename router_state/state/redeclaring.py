"""Bring a router's arms and budget in line with its declaration."""

from __future__ import annotations

from dataclasses import replace

from router_state import registered
from router_state.arms import Arms
from router_state.config import CostPrior, Matrix, ModelConfig, RouterConfig, Vector
from router_state.costs import believed
from router_state.errors import InvalidConfig
from router_state.learning.offline_sums import require_invertible
from router_state.policies.by_profile import POLICIES
from router_state.router import Policy, RouterState


def declare(state: RouterState, config: RouterConfig, *, now: float) -> None:
    """Put `config` in force: new models join, missing ones retire, prices and budget change.
    Learned state stays.

    A model that comes back while its last requests are still remembered keeps its learned state.

    Raises:
        InvalidConfig: the number of dimensions or the profile differs, or a prior does not fit;
        nothing has changed.
    """
    arms, policy = state.arms, POLICIES[config.profile]
    if config.dimensions != arms.d:
        raise InvalidConfig(
            f"the router has {arms.d} dimensions and can't change to {config.dimensions}: declare "
            "another router_id"
        )
    # Statistics under `live` contain a shared prior, those under `paper` a ridge, so neither can
    # become the other.
    if config.profile != state.config.profile:
        raise InvalidConfig(
            f"the router has profile {state.config.profile!r} and can't change to "
            f"{config.profile!r}, because they learn differently: declare another router_id"
        )
    joining = {name: model for name, model in config.models.items() if name not in arms.row}
    # All newcomers are prepared before the first one joins: so a prior that does not fit changes
    # nothing, and no newcomer starts from another newcomer.
    starts = {name: _start(state, policy, name, model, config) for name, model in joining.items()}
    _go_on(arms, config, now=now)
    for name, model in joining.items():
        A, b, costs = starts[name]
        pulls = onboarding_pulls(model, config)
        arm = arms.add(name, price=model.price, A=A, b=b, now_t=state.t, pulls=pulls)
        believed.start(arm.costs, costs, model.expected_cost_usd, tokens=arms.tokens.of(None))
    if joining:
        policy.joined(state, list(joining))
    registered.declare(state, config, now=now)
    state.put_in_force(config, policy)


def _go_on(arms: Arms, config: RouterConfig, *, now: float) -> None:
    """Bring existing arms in line: some retire, some come back, some change price."""
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


def _start(
    state: RouterState, policy: Policy, name: str, model: ModelConfig, config: RouterConfig
) -> tuple[Matrix, Vector, CostPrior | None]:
    """Return the start of a joining model: A and b of its rewards, and the prior of its bills.
    Raises InvalidConfig."""
    A, b = policy.statistics(state, config.knobs, name, model.prior)
    if model.prior is not None:
        require_invertible(f"the prior of {name!r}", A)
    prior, mean = model.cost_prior, model.expected_cost_usd
    if prior is None:
        return A, b, None
    # A declared mean replaces the prior's.
    prior = prior if mean is None else replace(prior, mean_usd=mean)
    return A, b, believed.checked(name, prior, price=model.price, bills=state.arms.bills)


def onboarding_pulls(model: ModelConfig, config: RouterConfig) -> int:
    """Return the number of forced calls of a joining model before its score decides; by default 0
    for a model with a prior.
    """
    if model.onboarding_pulls is not None:
        return model.onboarding_pulls
    return config.knobs.onboarding_pulls if model.prior is None else 0


def remove(state: RouterState, name: str) -> None:
    """Drop an arm for good."""
    state.arms.remove(name)
    for one in state.capabilities:
        one.without(name)


def drop_retired(state: RouterState, *, before: float) -> bool:
    """Forget arms that retired before a time (seconds since the epoch); tell whether there were
    any.
    """
    gone = [
        arm.name for arm in state.arms if arm.retired_at is not None and arm.retired_at < before
    ]
    for name in gone:
        remove(state, name)
    if gone:
        state.since.dropped(before)
    return bool(gone)
