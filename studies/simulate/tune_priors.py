"""Find how much a prior should count: reward with the router's priors, with the priors of other
models in their place, and without.

A prior that counts for much helps from the first request and harms for long where it is wrong;
`t_adapt` says after how many requests new evidence outweighs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from router_state.profiles import n_eff_of
from schemas.priors import InlinePrior, ReferencedPrior
from schemas.routers import RouterDeclared
from studies.history.happened import Declared
from studies.history.rerun import ReadPrior
from studies.simulate.cases import Case
from studies.simulate.scenario import Scenario
from studies.simulate.study import Survey, run

T_ADAPTS = (50.0, 100.0, 250.0, 500.0, 1000.0, 2000.0)
"""Numbers of requests that outweigh a prior, as tried."""
EARLY = "20%"
"""The part of the history in which priors matter most."""


class NoPriors(Exception):
    """The router declares fewer than two priors, so none can stand in another's place."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One `t_adapt` and the mean rewards that it brought; `early` is over the first fifth of the
    history.
    """

    t_adapt: float
    n_eff: float
    reward: float
    early: float
    reward_mismatched: float
    early_mismatched: float


def tune_priors(
    kept: Iterable[Case | Declared],
    found: Survey,
    *,
    profile: str,
    gamma: float,
    read_prior: ReadPrior,
    t_adapts: Sequence[float] = T_ADAPTS,
) -> tuple[list[Weight], float]:
    """Simulate every `t_adapt` with the declared priors and with mismatched ones; return them and
    the reward without priors.

    Args:
        kept: cases, to be read as often as needed; found: their survey.
        profile: "paper", "live" or "declared".
        gamma: forgetting, (0, 1].

    Raises:
        NoPriors: the router has fewer than two models with priors of their own.
    """
    if not any(
        isinstance(case, Declared) and case.router is not None and len(with_priors(case.router)) > 1
        for case in kept
    ):
        raise NoPriors(
            "fewer than two models of this router have a prior of their own, so there is nothing "
            "to mismatch"
        )
    n_effs = {t_adapt: n_eff_of(t_adapt, gamma=gamma) for t_adapt in t_adapts}
    policies = [
        {"name": f"{t_adapt:g}", "profile": profile, "knobs": {"gamma": gamma, "n_eff": n_eff}}
        for t_adapt, n_eff in n_effs.items()
    ]
    mark = {"kind": "traffic", "factor": 1, "at": EARLY}  # changes nothing, and parts the history
    scenario = Scenario.model_validate({"policies": policies, "events": [mark]})
    one = Scenario.model_validate({"policies": policies[:1]})
    right = run(rotated(kept, shift=0), found, scenario, read_prior=read_prior, compare=False).runs
    wrong = run(rotated(kept, shift=1), found, scenario, read_prior=read_prior, compare=False).runs
    # Without priors no weight of them matters: one policy stands for all.
    without = run(rotated(kept, shift=None), found, one, read_prior=read_prior, compare=False).runs
    weights = []
    for t_adapt, n_eff in n_effs.items():
        rewards = [
            value or 0.0
            for tracked in (right[f"{t_adapt:g}"].track, wrong[f"{t_adapt:g}"].track)
            for value in (tracked.total.mean_reward, tracked.phases[0].mean_reward)
        ]
        weights.append(Weight(t_adapt, n_eff, *rewards))
    return weights, next(iter(without.values())).track.total.mean_reward or 0.0


def rotated(kept: Iterable[Case | Declared], *, shift: int | None) -> Iterator[Case | Declared]:
    """Yield the cases with every model's prior replaced by that of the model `shift` places on, or
    by none.
    """
    for case in kept:
        if isinstance(case, Declared) and case.router is not None:
            yield replace(case, router=shifted(case.router, shift=shift))
        else:
            yield case


def shifted(router: RouterDeclared, *, shift: int | None) -> RouterDeclared:
    """Return a router with its models' priors rotated or removed; the knobs decide how much they
    count.
    """
    names, models = with_priors(router), dict(router.models)
    for place, name in enumerate(names):
        prior = None
        if shift is not None:
            prior = models_prior(router, names[(place + shift) % len(names)])
        models[name] = models[name].model_copy(update={"prior": prior})
    return router.model_copy(update={"models": models})


def models_prior(router: RouterDeclared, name: str) -> InlinePrior | ReferencedPrior:
    """Return a model's prior without its own weight."""
    prior = router.models[name].prior
    assert isinstance(prior, InlinePrior | ReferencedPrior)
    return prior.model_copy(update={"n_eff": None})


def with_priors(router: RouterDeclared) -> list[str]:
    """Return the models with a prior of their own."""
    return [
        name
        for name, model in router.models.items()
        if isinstance(model.prior, InlinePrior | ReferencedPrior)
    ]
