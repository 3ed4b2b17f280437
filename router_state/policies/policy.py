"""Define the protocol of policies, through which the engine uses them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.kernel import Decider, Learner, Pacer
from router_state.policies.live import Live
from router_state.policies.paper import Paper
from router_state.state.router import Chances, RouterState


class Policy(Protocol):
    """The way in which a router decides and learns. Policies hold no state: all of it is the
    router's.

    Attributes:
        decider: makes the policy's steps of a decision; learner: learns its rewards and bills.
    """

    @property
    def decider(self) -> Decider: ...

    @property
    def learner(self) -> Learner: ...

    def pacer(self, state: RouterState, config: RouterConfig) -> Pacer:
        """Return the pacer from now on: the present one if it can go on."""
        ...

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """Return the random generator from now on: the present one if it can go on."""
        ...

    def statistics(
        self, state: RouterState, knobs: Knobs, model: str, prior: Prior | None
    ) -> tuple[Matrix, Vector]:
        """Return A (d, d) and b (d,) with which a joining arm starts. Raises InvalidConfig."""
        ...

    def joined(self, state: RouterState, names: list[str]) -> None:
        """Complete the start of newcomers, and update the shared prior by their priors."""
        ...


POLICIES: Mapping[str, Policy] = MappingProxyType({"paper": Paper(), "live": Live()})
"""Policies by the names of `config.PROFILES`."""
