"""A router's configuration as bytes and back: the piece of its state that a declaration writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import orjson
from msgspec import convert

from router_state import registered
from router_state.config import Knobs, ModelConfig, Price, ProjectionRef, RouterConfig
from router_state.errors import CorruptSnapshot
from router_state.packing.framing import Json, loads, reading
from router_state.profiles import UNUSED, knobs_for

PLACES = (
    "models",
    "budget",
    "dimensions",
    "profile",
    "knobs",
    "caps",
    "offset",
    "applied",
    "projection",
    "offers",
    "caches",
    "error_reward",
    "latency",
    "spending",
)
"""Order of what has been kept for long, so that its bytes stay; what is new follows."""
MAX_DIMENSIONS = 4096
"""Most dimensions of a context (the wire contract)."""


def config_body(config: RouterConfig) -> bytes:
    """Return a configuration without its priors, which are not needed once it is in force."""
    models = {
        name: [
            model.price.input_price_per_m,
            model.price.output_price_per_m,
            model.onboarding_pulls,
        ]
        for name, model in config.models.items()
    }
    body: dict[str, object] = {
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
    places = {name: place for place, name in enumerate(PLACES)}
    return orjson.dumps(dict(sorted(body.items(), key=lambda one: places.get(one[0], len(places)))))


def says_projection(data: bytes) -> bool:
    """Tell whether a packed configuration says which projection the router has: an older program
    that does not know of projections leaves it out."""
    return "projection" in loads(data)


def _used(profile: str, knobs: dict[str, Json]) -> dict[str, Json]:
    """Return the knobs that a profile uses; those of another version of this program are left
    out."""
    used = set(Knobs.__slots__) - UNUSED[profile]
    return {name: value for name, value in knobs.items() if name in used}


def unpack_config(data: bytes) -> RouterConfig:
    """Invert `config_body`, framed. Raises CorruptSnapshot."""
    with reading("configuration"):
        body = loads(data)
        # Checked before arrays of that size are made.
        if not 2 <= body["dimensions"] <= MAX_DIMENSIONS:
            raise CorruptSnapshot(f"{body['dimensions']} dimensions can't be")
        profile = body["profile"]
        return RouterConfig(
            models={
                name: ModelConfig(Price(i, o), None, pulls)
                for name, (i, o, pulls) in body["models"].items()
            },
            budget_usd_per_request=body["budget"],
            dimensions=body["dimensions"],
            profile=profile,
            knobs=knobs_for(profile, _used(profile, body["knobs"])),
            capabilities=registered.unpack(body),
            offset=body["offset"],
            applied=convert(body["applied"], tuple[int, int]),
            projection=projection_of(body),
        )


def projection_of(body: Mapping[str, Mapping[str, str] | None]) -> ProjectionRef | None:
    """Return which projection a configuration, or a declaration, names."""
    named = body.get("projection")
    return None if named is None else ProjectionRef(named["ref"], named["sha256"])
