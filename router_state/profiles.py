"""Profiles: named sets of knobs, and a router's own settings in place of single knobs."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any

from router_state.config import LIVE, PAPER, Knobs
from router_state.errors import InvalidConfig

UNUSED: Mapping[str, frozenset[str]] = MappingProxyType(
    {"paper": frozenset(), "live": frozenset({"alpha", "lambda_c", "ridge", "v_max"})}
)
"""Knobs that a profile does not use, by profile: a declaration that sets one is refused."""
PROFILES: Mapping[str, Knobs] = MappingProxyType({"paper": PAPER, "live": LIVE})
"""Profiles by the names that a declaration gives."""


def n_eff_of(t_adapt: float, *, gamma: float) -> float:
    """Return the number of observations for a prior that is outweighed after `t_adapt` requests.

    ParetoBandit Eq. 13: (γ^(−T_adapt) − 1)/(1 − γ); without forgetting (γ = 1) its limit T_adapt.
    """
    if gamma >= 1.0:
        return float(t_adapt)
    try:
        return float((gamma**-t_adapt - 1.0) / (1.0 - gamma))
    # `knobs_for` then refuses the knob by its name; an error of arithmetic would not name it.
    except OverflowError:
        return inf


def knobs_for(profile: str, overrides: Mapping[str, Any] | None = None) -> Knobs:
    """Return the knobs of a profile, with a router's own settings in place of the profile's;
    `t_adapt` sets `n_eff`.

    Raises:
        InvalidConfig: an unknown profile or knob, one that the profile does not use, or a value out
            of range.
    """
    if profile not in PROFILES:
        raise InvalidConfig(f"profile {profile!r} is unknown; choose one of {', '.join(PROFILES)}")
    base = PROFILES[profile]
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    t_adapt = given.pop("t_adapt", None)
    if t_adapt is not None and "n_eff" not in given:
        gamma = given.get("gamma", base.gamma)
        given["n_eff"] = n_eff = n_eff_of(t_adapt, gamma=gamma)
        if not 0.0 < n_eff < inf:
            raise InvalidConfig(
                f"t_adapt {t_adapt:g} with gamma {gamma:g} makes n_eff {n_eff:g}: a prior must "
                "count for some observations, and not for endlessly many"
            )
    unknown = given.keys() - set(Knobs.__slots__)
    if unknown:
        raise InvalidConfig(f"unknown knobs: {', '.join(sorted(unknown))}")
    unused = given.keys() & UNUSED[profile]
    if unused:
        raise InvalidConfig(
            f"profile {profile!r} does not use {', '.join(sorted(unused))}: leave them out, or "
            "choose profile paper"
        )
    return Knobs(**{**{name: getattr(base, name) for name in Knobs.__slots__}, **given})
