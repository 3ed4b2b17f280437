"""What a router's file is made of: named values and arrays, read by names that are all known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from router_state.errors import CorruptSnapshot
from router_state.state.framing import Json

Values = dict[str, Json]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a file holds of a state: JSON values, and arrays by name."""

    values: Values
    arrays: dict[str, Array]

    def take(self, name: str, *shape: int) -> Array:
        """Return an array and take it out. Raises CorruptSnapshot where it has another shape."""
        array = self.arrays.pop(name)
        if array.shape != shape:
            raise CorruptSnapshot(f"{name} has the shape {array.shape}, not {shape}")
        return array


def fields_of(thing: object, names: Iterable[str]) -> Values:
    """Return an object's attributes by their names in a file."""
    return {name: getattr(thing, name) for name in names}


def values_of(what: str, body: Mapping[str, Json], names: tuple[str, ...]) -> list[Json]:
    """Return a piece's values in the order of their names. Raises CorruptSnapshot for a name that
    is none of these."""
    if unknown := set(body) - set(names):
        raise CorruptSnapshot(unknown_names(what, unknown))
    return [body[name] for name in names]


def unknown_names(what: str, names: Iterable[str]) -> str:
    """Return the sentence about names that only a newer program knows."""
    unknown = ", ".join(sorted(names))
    return f"{what} has {unknown}, which this program does not know: use a newer pbstream"
