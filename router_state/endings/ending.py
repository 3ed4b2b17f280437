"""The end of a model as a router declares it, and the names by which the model answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Protocol

from msgspec import Struct

from ground.same_model import is_same_model
from router_state.instants import utc


class ModelOnWire(Protocol):
    """A model as it is declared."""

    @property
    def retires_at(self) -> datetime | None: ...
    @property
    def answers_as(self) -> Sequence[str] | None: ...
    @property
    def variant_of(self) -> str | None: ...


class Ending(Struct, frozen=True, omit_defaults=True):
    """The end of a model, and its names.

    Attributes:
        retires_at: when its provider retires it, in seconds since the epoch; None: not known.
        answers_as: names by which it answers, * for any text.
        variant_of: the model that it is a variant of, by whose name it answers.
    """

    retires_at: float | None = None
    answers_as: tuple[str, ...] = ()
    variant_of: str | None = None

    def is_answer(self, called: str, answered: str) -> bool:
        """Tell whether the name in a response belongs to this model.

        Args:
            called: name by which the model was called; answered: name in the response.
        """
        names = (called, self.variant_of or called)
        if any(is_same_model(name, answered) for name in names):
            return True
        return any(fnmatchcase(answered.lower(), one.lower()) for one in self.answers_as)


NOTHING = Ending()
"""A model of which nothing is declared."""


def read(wire: ModelOnWire) -> Ending | None:
    """Return the declared end of a model and the names it answers by; None: neither is declared."""
    at = None if wire.retires_at is None else wire.retires_at.timestamp()
    found = Ending(at, tuple(wire.answers_as or ()), wire.variant_of)
    return None if found == NOTHING else found


def document(ending: Ending) -> dict[str, object]:
    """Invert `read`, without what `variants` declares."""
    found: dict[str, object] = {}
    if ending.retires_at is not None:
        at = utc(ending.retires_at)
        # A declaration holds it as a date where it is one.
        text = at.isoformat().replace("+00:00", "Z")
        found["retires_at"] = text.removesuffix("T00:00:00Z")
    if ending.answers_as:
        found["answers_as"] = list(ending.answers_as)
    return found
