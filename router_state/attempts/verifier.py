"""The declaration of a router's verifiers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Protocol, Self

from msgspec import Struct

from router_state.config import RouterConfig
from router_state.errors import InvalidConfig

MOST_BINS = 8
"""Most bins of a verdict: each bin needs labels of its own."""
MOST_VERIFIERS = 8
"""Most verifiers of a router."""

MOST_ATTEMPTS = 3
"""Most calls of a plan."""


class VerifierOnWire(Protocol):
    """A verifier as it is declared."""

    usd: float
    exact: bool
    bins: int | None


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def verifiers(self) -> Mapping[str, VerifierOnWire] | None: ...
    @property
    def max_attempts(self) -> int | None: ...


class RequestOnWire(Protocol):
    """A request, which may name the verifiers that it has."""

    @property
    def verifiers(self) -> Collection[str] | None: ...


class Verifier(Struct, frozen=True, omit_defaults=True):
    """A verifier.

    Attributes:
        usd: dollars of one verdict.
        exact: whether its verdicts are the truth, as those of complete tests.
        bins: number of bins of equal width that verdicts in [0, 1] fall into; 2: passed or not.
    """

    usd: float = 0.0
    exact: bool = False
    bins: int = 2

    def bin_of(self, verdict: float) -> int:
        """Return the bin of a verdict."""
        return min(int(verdict * self.bins), self.bins - 1)


class Declared(Struct, frozen=True, omit_defaults=True):
    """The verifiers of a router by name, and how many calls a request may have."""

    verifiers: Mapping[str, Verifier]
    max_attempts: int = 2

    @classmethod
    def read(cls, wire: OnWire) -> Self | None:
        """Return the verifiers of a router's declaration; None: it declares none."""
        if wire.verifiers is None:
            return None
        found = {
            name: Verifier(one.usd, one.exact, one.bins or 2)
            for name, one in wire.verifiers.items()
        }
        return cls(found, wire.max_attempts or 2)

    def document(self) -> dict[str, object]:
        """Return the fields of a declaration: what `read` takes."""
        verifiers = {
            name: {"usd": one.usd}
            | ({"exact": True} if one.exact else {})
            | ({} if one.bins == 2 else {"bins": one.bins})
            for name, one in self.verifiers.items()
        }
        return {"verifiers": verifiers, "max_attempts": self.max_attempts}

    def check(self, config: RouterConfig) -> None:
        """See `config.Checked`."""
        if config.profile != "live":
            raise InvalidConfig("verifiers need profile live")
        if not 1 <= len(self.verifiers) <= MOST_VERIFIERS:
            raise InvalidConfig(f"a router has 1 to {MOST_VERIFIERS} verifiers")
        if not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise InvalidConfig(f"max_attempts must be 1 to {MOST_ATTEMPTS}")
        for name, one in self.verifiers.items():
            if not 0.0 <= one.usd < math.inf:
                raise InvalidConfig(f"usd of verifier {name!r} must be finite and ≥ 0")
            if not 2 <= one.bins <= MOST_BINS:
                raise InvalidConfig(f"bins of verifier {name!r} must be 2 to {MOST_BINS}")
