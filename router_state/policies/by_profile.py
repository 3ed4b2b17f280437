"""Policies by the names of `router_state.profiles`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from router_state.policies.live import Live
from router_state.policies.paper import Paper
from router_state.router import Policy

POLICIES: Mapping[str, Policy] = MappingProxyType({"paper": Paper(), "live": Live()})
