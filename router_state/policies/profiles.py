"""The policies by the profiles' names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from router_state.policies.live import Live
from router_state.policies.paper import Paper
from router_state.policies.policy import Policy

POLICIES: Mapping[str, Policy] = MappingProxyType({"paper": Paper(), "live": Live()})
"""By the names of `config.PROFILES`."""
