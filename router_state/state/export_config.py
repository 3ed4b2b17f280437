"""A router's configuration as a file names it, and back."""

from __future__ import annotations

from collections.abc import Mapping

from router_state.config import Cap, ModelConfig, Price, ProjectionRef, RouterConfig, knobs_for
from router_state.errors import CorruptSnapshot
from router_state.state.export_fields import Values, fields_of, values_of
from router_state.state.framing import Json

MAX_DIMENSIONS = 4096
"""Above it a file is refused before arrays of d² numbers are made of it."""
KNOBS = (
    "alpha",
    "gamma",
    "lambda_c",
    "ridge",
    "v_max",
    "n_eff",
    "onboarding_pulls",
    "epsilon",
    "seed",
    "commitment_ttl_seconds",
    "dollar_dual",
    "commit_and_settle",
    "feedback_clock",
    "drift_alarms",
    "paced_onboarding",
    "shared_learning",
)
"""Of a configuration."""
CAP = ("usd", "seconds", "hard")
"""Dollars, seconds, and whether it stops traffic."""
REF = ("ref", "sha256")
"""Of a projection."""
PRICE = ("input_price_per_m", "output_price_per_m")
"""Dollars per million tokens."""


def config_values(config: RouterConfig) -> Values:
    """Return a configuration as a file names it."""
    return {
        "models": {
            name: {**fields_of(model.price, PRICE), "onboarding_pulls": model.onboarding_pulls}
            for name, model in config.models.items()
        },
        "budget_usd_per_request": config.budget_usd_per_request,
        "dimensions": config.dimensions,
        "profile": config.profile,
        "knobs": fields_of(config.knobs, KNOBS),
        "caps": [fields_of(cap, CAP) for cap in config.caps],
        **({} if config.projection is None else {"projection": fields_of(config.projection, REF)}),
    }


def restored_config(body: Mapping[str, Json]) -> RouterConfig:
    """Invert `config_values`. Raises CorruptSnapshot, LookupError, TypeError, ValueError."""
    names = ("models", "budget_usd_per_request", "dimensions", "profile", "knobs", "caps")
    # Routers had no projection of their own at first: None.
    models, budget, dimensions, profile, knobs, caps, projection = values_of(
        "the configuration", {"projection": None, **body}, (*names, "projection")
    )
    if not 2 <= dimensions <= MAX_DIMENSIONS:  # before anything of that size is made
        raise CorruptSnapshot(f"{dimensions} dimensions can't be")
    known = {
        name: values_of(f"model {name}", model, (*PRICE, "onboarding_pulls"))
        for name, model in models.items()
    }
    return RouterConfig(
        models={
            name: ModelConfig(Price(i, o), None, pulls) for name, (i, o, pulls) in known.items()
        },
        budget_usd_per_request=budget,
        dimensions=dimensions,
        profile=profile,
        knobs=knobs_for(profile, knobs),
        caps=tuple(Cap(*values_of("a cap", cap, CAP)) for cap in caps),
        projection=projection and ProjectionRef(*values_of("the projection", projection, REF)),
    )
