"""The declaration of a membership in a family."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from router_state.config import LIVE, RouterConfig
from router_state.errors import InvalidConfig
from router_state.packing.framing import Json, converted


class FamilyOnWire(Protocol):
    """A family as it is declared."""

    name: str
    gives: bool
    takes: bool


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def family(self) -> FamilyOnWire | None: ...
    @property
    def gamma(self) -> float | None: ...


class FamilyDeclared(Struct, frozen=True):
    """A membership as declared; `gamma` is the router's forgetting factor."""

    name: str
    gives: bool = True
    takes: bool = True
    gamma: float = LIVE.gamma

    def check(self, config: RouterConfig) -> None:
        """Raise InvalidConfig where a router can't be a member."""
        if config.profile != "live":
            raise InvalidConfig(
                f"a router of profile {config.profile!r} learns each model apart: a family needs "
                "profile live"
            )

    @classmethod
    def read(cls, wire: OnWire) -> FamilyDeclared | None:
        """Return the membership that a declaration names; None: it names no family."""
        family = wire.family
        if family is None:
            return None
        gamma = LIVE.gamma if wire.gamma is None else wire.gamma
        return cls(family.name, family.gives, family.takes, gamma)

    @property
    def document(self) -> dict[str, object]:
        """Return the field of a declaration."""
        if self.gives and self.takes:
            return {"family": self.name}
        return {"family": {"name": self.name, "gives": self.gives, "takes": self.takes}}

    def pack(self) -> Json:
        """Return the membership as JSON."""
        return [self.name, self.gives, self.takes, self.gamma]

    @classmethod
    def unpack(cls, data: Json) -> FamilyDeclared:
        """Invert `pack`. Raises DamagedState."""
        return cls(*converted(data, tuple[str, bool, bool, float], "family"))
