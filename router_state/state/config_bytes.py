"""A router's configuration as bytes and back: the piece of its state that a declaration writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import orjson
from msgspec import to_builtins

from router_state.cache_price import CachePrice
from router_state.capabilities import Offers
from router_state.config import Cap, Knobs, ModelConfig, Price, ProjectionRef, RouterConfig
from router_state.errors import CorruptSnapshot
from router_state.latency.goal import LatencyGoal
from router_state.periods.declared import Spending
from router_state.profiles import UNUSED, knobs_for
from router_state.state.framing import Json, frame, loads, reading

MAX_DIMENSIONS = 4096
"""Most dimensions of a context (the wire contract)."""


def pack_config(config: RouterConfig) -> bytes:
    """Return a configuration without its priors, which are not needed once it is in force."""
    models = {
        name: [
            model.price.input_price_per_m,
            model.price.output_price_per_m,
            model.onboarding_pulls,
        ]
        for name, model in config.models.items()
    }
    return frame(
        orjson.dumps(
            {
                "models": models,
                "budget": config.budget_usd_per_request,
                "dimensions": config.dimensions,
                "profile": config.profile,
                "knobs": _knobs_to_keep(config),
                "caps": [asdict(cap) for cap in config.caps],
                "offset": config.offset,
                "applied": config.applied,
                "projection": config.projection and asdict(config.projection),
                **_said(config),
            }
        )
    )


def _said(config: RouterConfig) -> dict[str, Json]:
    """Return the optional fields that were declared."""
    said: dict[str, Json] = {}
    if config.offers:
        said["offers"] = {name: to_builtins(one) for name, one in config.offers.items()}
    if config.caches:
        said["caches"] = {name: to_builtins(one) for name, one in config.caches.items()}
    if config.error_reward is not None:
        said["error_reward"] = config.error_reward
    if config.latency is not None:
        said["latency"] = asdict(config.latency)
    if config.spending is not None:
        said["spending"] = config.spending.pack()
    return said


def says_projection(data: bytes) -> bool:
    """Tell whether a packed configuration says which projection the router has: an older program
    that does not know of projections leaves it out."""
    return "projection" in loads(data)


def _knobs_to_keep(config: RouterConfig) -> dict[str, object]:
    """Return the knobs that a router's profile uses."""
    unused = UNUSED[config.profile]
    return {name: getattr(config.knobs, name) for name in Knobs.__slots__ if name not in unused}


def unpack_config(data: bytes) -> RouterConfig:
    """Invert `pack_config`. Raises CorruptSnapshot."""
    with reading("configuration"):
        body = loads(data)
        # Checked before arrays of that size are made.
        if not 2 <= body["dimensions"] <= MAX_DIMENSIONS:
            raise CorruptSnapshot(f"{body['dimensions']} dimensions can't be")
        # JSON has no tuples.
        costs, rewards = body["applied"]
        return RouterConfig(
            models={
                name: ModelConfig(Price(i, o), None, pulls)
                for name, (i, o, pulls) in body["models"].items()
            },
            budget_usd_per_request=body["budget"],
            dimensions=body["dimensions"],
            profile=body["profile"],
            # Knobs that only another version of this program has are left out.
            knobs=knobs_for(
                body["profile"],
                {
                    name: value
                    for name, value in body["knobs"].items()
                    if name in Knobs.__slots__ and name not in UNUSED[body["profile"]]
                },
            ),
            caps=tuple(Cap(**cap) for cap in body["caps"]),
            offset=body["offset"],
            applied=(costs, rewards),
            projection=projection_of(body),
            spending=Spending.unpack(body["spending"]) if "spending" in body else None,
            offers={
                # JSON has no tuples.
                name: Offers(**{**one, "regions": tuple(one.get("regions", ()))})
                for name, one in body.get("offers", {}).items()
            },
            error_reward=body.get("error_reward"),
            latency=LatencyGoal(**body["latency"]) if "latency" in body else None,
            caches={name: CachePrice(**one) for name, one in body.get("caches", {}).items()},
        )


def projection_of(body: Mapping[str, Mapping[str, str] | None]) -> ProjectionRef | None:
    """Return which projection a configuration, or a declaration, names."""
    named = body.get("projection")
    return None if named is None else ProjectionRef(named["ref"], named["sha256"])
