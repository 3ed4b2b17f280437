"""The capability of needs: models that can't meet a request's needs are ruled out. The capability
has no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import to_builtins

from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.needs.offers import Offers, rule_out


class OnWire(Protocol):
    """A router's declaration; each of `models` may have `offers`."""

    models: Mapping[str, Any]


class Needed(Capability):
    """The offers of a router's models.

    Attributes:
        offers: offers by model, of models that declare any.
    """

    __slots__ = ("offers",)
    name = "offers"
    declaration = dict[str, Offers]

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.offers: Mapping[str, Offers] = {}

    @classmethod
    def read(cls, wire: OnWire) -> dict[str, Offers] | None:
        """See Capability."""
        found = {
            name: Offers(**model.offers.model_dump())
            for name, model in wire.models.items()
            if model.offers is not None
        }
        return found or None

    @classmethod
    def document_model(cls, declared: Mapping[str, Offers], model: str) -> dict[str, object]:
        """See Capability."""
        return {"offers": to_builtins(declared[model])} if model in declared else {}

    def declare(self, declared: Mapping[str, Offers], *, now: float) -> None:
        """See Capability."""
        self.offers = declared

    def rule_out(self, choice: Choice) -> None:
        """See Capability."""
        names, request = self.arms.names, choice.request
        found = rule_out(names, choice.excluded, self.offers, request.needs, request.input_tokens)
        if found is not choice.excluded:
            choice.limit(found, names)
