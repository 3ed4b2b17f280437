"""Numbers that a capability shares with other routers, as Gaussians: the evidence of one router, or
of all others together.

A capability that shares has the hooks `Capability.shares` and `Capability.take_shared`, and does
not know which capability carries its numbers. All numbers are in units of the deviation that the
capability expects between routers before any of them has shared numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from msgspec import Struct, json

from router_state.config import Vector
from router_state.errors import UnusablePrior

MOST_NUMBERS = 32
"""Most numbers of one subject and model."""
LARGEST = 1e6
"""Largest size of a number, or of a precision."""
MOST_SHARED_BYTES = 760
"""Most bytes of one model's numbers in a record of a report, as base64 in JSON with their names, so
that the record stays below 3 kB at 26 dimensions."""


class Numbers(Struct, frozen=True, eq=False):
    """p numbers as a Gaussian: precisions, and precision × mean; both of shape (p,)."""

    precision: Vector
    weighted: Vector

    @property
    def means(self) -> Vector:
        """Return the means; 0 where nothing is known."""
        known = self.precision > 0.0
        return np.divide(
            self.weighted, self.precision, out=np.zeros(len(self.precision)), where=known
        )


ByModel: TypeAlias = Mapping[str, Mapping[str, Numbers]]
"""Numbers by model and subject: a verifier, or a judge."""
Packed: TypeAlias = dict[str, bytes]
"""Numbers of one model, by capability and subject."""


class Sharing(Protocol):
    """A capability that shares numbers; `Capability` names its hooks."""

    name: ClassVar[str]

    def shares(self) -> ByModel: ...
    def take_shared(self, numbers: ByModel | None) -> None: ...


def bytes_of(numbers: Numbers) -> bytes:
    """Return numbers as 32-bit floats."""
    both = np.concatenate([numbers.precision, numbers.weighted])
    return bytes(np.clip(both, -LARGEST, LARGEST).astype("<f4").tobytes())


def numbers_of(data: bytes) -> Numbers:
    """Invert `bytes_of`. Raises UnusablePrior."""
    if len(data) % 8 or not 8 <= len(data) <= 8 * MOST_NUMBERS:
        raise UnusablePrior(f"{len(data)} bytes do not hold numbers that routers share")
    precision, weighted = np.frombuffer(data, "<f4").astype(float).reshape(2, -1)
    if not np.isfinite(weighted).all() or not (np.isfinite(precision) & (precision >= 0.0)).all():
        raise UnusablePrior(
            "numbers that routers share must be finite, their precision not below 0"
        )
    return Numbers(precision, weighted)


def packed(sharing: Iterable[Sharing]) -> dict[str, Packed]:
    """Return the numbers that capabilities share, by model. If a model has too many subjects, those
    with the least evidence are left out (`MOST_SHARED_BYTES`)."""
    found: dict[str, list[tuple[float, str, bytes]]] = {}
    for one in sharing:
        for model, subjects in one.shares().items():
            for subject, numbers in subjects.items():
                name = f"{one.name}:{subject}"
                evidence = float(numbers.precision.sum())
                found.setdefault(model, []).append((-evidence, name, bytes_of(numbers)))
    return {model: _fitting(sorted(several)) for model, several in found.items()}


def _fitting(several: list[tuple[float, str, bytes]]) -> Packed:
    found: Packed = {}
    left = MOST_SHARED_BYTES
    for _, name, data in several:
        # "name":"base64",
        if (size := len(json.encode(name)) + 4 * ((len(data) + 2) // 3) + 4) <= left:
            found[name] = data
            left -= size
    return found


def take(sharing: Iterable[Sharing], others: Mapping[str, Packed] | None) -> None:
    """Hand to each capability the numbers of other routers on its subjects, by model; None takes
    back all such numbers. Raises UnusablePrior."""
    if others is None:
        for one in sharing:
            one.take_shared(None)
        return
    read = {
        model: {name: numbers_of(data) for name, data in subjects.items()}
        for model, subjects in others.items()
    }
    for one in sharing:
        prefix = f"{one.name}:"
        one.take_shared(
            {
                model: {
                    name.removeprefix(prefix): numbers
                    for name, numbers in subjects.items()
                    if name.startswith(prefix)
                }
                for model, subjects in read.items()
            }
        )
