"""A router's configuration as bytes and back: the piece of its state that a declaration writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Literal

import orjson
from msgspec import Meta, Struct

from router_state import registered
from router_state.config import ModelConfig, Price, ProjectionRef, RouterConfig
from router_state.errors import DamagedState, InvalidConfig
from router_state.packing.framing import Json, Whole, converted, decoded
from router_state.packing.price_rows import Dollars, TierRow, tiers
from router_state.profiles import UNUSED, knobs_for

MAX_DIMENSIONS = 4096
"""Most dimensions of a context (the wire contract)."""


def config_body(config: RouterConfig) -> bytes:
    """Return a configuration without its priors, which are not needed once it is in force."""
    models = {
        name: [
            model.price.input_price_per_m,
            model.price.output_price_per_m,
            model.onboarding_pulls,
            *([model.price.rows()] if model.price.above else ()),
        ]
        for name, model in config.models.items()
    }
    body = {
        "models": models,
        "budget": config.budget_usd_per_request,
        "dimensions": config.dimensions,
        "profile": config.profile,
        "knobs": _used(config.profile, asdict(config.knobs)),
        "offset": config.offset,
        "applied": config.applied,
        "projection": config.projection,
        **registered.pack(config),
    }
    return orjson.dumps(body)


def _used(profile: str, knobs: Mapping[str, Json]) -> dict[str, Json]:
    """Return the knobs that a profile uses."""
    return {name: value for name, value in knobs.items() if name not in UNUSED[profile]}


Pulls = Annotated[int, Meta(ge=0)]


class _Model(Struct, array_like=True):
    """A model as stored; `above` is written only if it has prices of long inputs."""

    input_price_per_m: Dollars
    output_price_per_m: Dollars
    onboarding_pulls: Pulls | None
    above: tuple[TierRow, ...] = ()

    @property
    def config(self) -> ModelConfig:
        """Return the model. Raises DamagedState."""
        price = Price(self.input_price_per_m, self.output_price_per_m, tiers(self.above))
        return ModelConfig(price, None, self.onboarding_pulls)


class _Body(Struct):
    """The configuration as stored, see `config_body`, without capabilities."""

    models: dict[str, _Model]
    budget: float | None
    dimensions: Annotated[int, Meta(ge=2, le=MAX_DIMENSIONS)]
    profile: Literal["live", "paper"]
    knobs: dict[str, float | int]
    offset: Whole
    applied: tuple[Whole, Whole]
    projection: ProjectionRef | None


def config_from(body: bytes) -> RouterConfig:
    """Invert `config_body`. Raises DamagedState."""
    whole = decoded(body, dict[str, Json], "configuration")
    kept = converted(whole, _Body, "configuration")
    try:
        return RouterConfig(
            models={name: model.config for name, model in kept.models.items()},
            budget_usd_per_request=kept.budget,
            dimensions=kept.dimensions,
            profile=kept.profile,
            knobs=knobs_for(kept.profile, kept.knobs),
            capabilities=registered.unpack(whole),
            offset=kept.offset,
            applied=kept.applied,
            projection=kept.projection,
        )
    # A declaration in force has not contradicted itself.
    except InvalidConfig as error:
        raise DamagedState(f"configuration: {error}") from None
