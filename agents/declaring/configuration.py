"""Convert declarations to the core's configuration, and back."""

from __future__ import annotations

import binascii
import math
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from router_state import registered
from router_state.config import (
    CostPrior,
    Knobs,
    ModelConfig,
    Prior,
    ProjectionRef,
    RouterConfig,
)
from router_state.errors import CorruptSnapshot
from router_state.long_inputs.declared_prices import document as prices_of
from router_state.long_inputs.declared_prices import price_of
from router_state.profiles import PROFILES, knobs_for
from schemas.priors import InlinePrior, LikePrior, ReferencedPrior
from schemas.routers import ModelDeclared, RouterDeclared

KNOBS = ("gamma", "alpha", "lambda_c", "t_adapt", "ridge", "v_max", "epsilon", "seed")
"""Fields of a declaration that are knobs of the core, by the same name."""


def config_of(
    declared: RouterDeclared, *, offset: int, references: Mapping[str, Prior]
) -> RouterConfig:
    """Return a declaration as the core's configuration.

    Args:
        offset: offset of the declaration in `pb.routers`.
        references: priors that were read from the files which the declaration names, by model.

    Raises:
        InvalidConfig: the knobs contradict each other.
        CorruptSnapshot: its snapshot is not base64.
    """
    knobs = {name: getattr(declared, name) for name in KNOBS}
    return RouterConfig(
        models={
            name: _model(model, references.get(name)) for name, model in declared.models.items()
        },
        budget_usd_per_request=declared.budget_usd_per_request,
        dimensions=declared.dimensions,
        profile=declared.profile,
        knobs=knobs_for(declared.profile, knobs),
        capabilities=registered.read(declared),
        offset=offset,
        snapshot=None if declared.snapshot is None else _decoded(declared.snapshot),
        projection=projection_ref(declared),
    )


def projection_ref(declared: RouterDeclared) -> ProjectionRef | None:
    """Return the projection of a router's prompts; None for the workers' own."""
    named = declared.projection
    return None if named is None else ProjectionRef(named.ref, named.sha256)


def _decoded(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise CorruptSnapshot(f"no base64: {error}") from None


def _model(declared: ModelDeclared, referenced: Prior | None) -> ModelConfig:
    price = price_of(declared)
    match declared.prior:
        case None:
            prior = None
        case InlinePrior(A=A, b=b, n_eff=n_eff):
            prior = Prior(A=np.array(A), b=np.array(b), n_eff=n_eff)
        case LikePrior(like=like, n_eff=n_eff):
            prior = Prior(like=like, n_eff=n_eff)
        case ReferencedPrior():
            # The prior's file may have costs only.
            prior = None if referenced is None or referenced.A is None else referenced
    return ModelConfig(
        price,
        prior,
        declared.onboarding_pulls,
        declared.expected_cost_usd,
        _costs(declared, referenced),
    )


def _costs(declared: ModelDeclared, referenced: Prior | None) -> CostPrior | None:
    """Return the declared prior of costs, else that of the prior's file."""
    given = declared.cost_prior
    if given is None:
        return None if referenced is None else referenced.costs
    return CostPrior(np.array(given.A), np.array(given.b), given.mean_usd, given.n_eff)


def declaration_of(config: RouterConfig, router_id: str) -> dict[str, object]:
    """Return a configuration as a declaration. Priors are left out: they are part of the learned
    state by now.

    Only knobs that differ from the profile's are named.
    """
    models: dict[str, dict[str, object]] = {}
    for name, model in config.models.items():
        models[name] = prices_of(model.price)
        if model.onboarding_pulls is not None:
            models[name]["onboarding_pulls"] = model.onboarding_pulls
        models[name] |= registered.document_model(config, name)
    document: dict[str, object] = {
        "router_id": router_id,
        "models": models,
        "profile": config.profile,
        "dimensions": config.dimensions,
    }
    if config.budget_usd_per_request is not None:
        document["budget_usd_per_request"] = config.budget_usd_per_request
    if config.projection is not None:
        document["projection"] = asdict(config.projection)
    return document | registered.document(config) | _knobs(config.knobs, PROFILES[config.profile])


def _knobs(knobs: Knobs, usual: Knobs) -> dict[str, object]:
    names = [name for name in KNOBS if name != "t_adapt"]
    found = {
        name: getattr(knobs, name) for name in names if getattr(knobs, name) != getattr(usual, name)
    }
    if knobs.n_eff != usual.n_eff:
        found["t_adapt"] = float(f"{_t_adapt(knobs.n_eff, gamma=knobs.gamma):.12g}")
    return found


def _t_adapt(n_eff: float, *, gamma: float) -> float:
    """Invert `config.n_eff_of`."""
    return n_eff if gamma >= 1.0 else math.log1p(n_eff * (1.0 - gamma)) / -math.log(gamma)
