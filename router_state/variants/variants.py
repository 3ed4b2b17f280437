"""The capability of variants: what is called, and with which parameters, stands on the decision.

A variant with parameters is called by the name of its model, any other model by its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, to_builtins

from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.packing.framing import Json, converted
from router_state.record import RequestRecord

NAMED = 4
"""Most models beside the chosen one that a decision names, see `published_values.FALLBACKS`."""


class Variant(Struct, frozen=True, omit_defaults=True):
    """A way to call a model: the model that it is a variant of, and the parameters of the call."""

    variant_of: str | None = None
    params: dict[str, Json] | None = None


class Named(Struct, frozen=True, omit_defaults=True):
    """The models of a decision that are variants, with the ways to call them."""

    chosen: Variant | None = None
    others: dict[str, Variant] = {}


class ModelOnWire(Protocol):
    """A model as it is declared."""

    variant_of: str | None
    params: dict[str, Any] | None


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def models(self) -> Mapping[str, ModelOnWire]: ...


class Variants(Capability):
    """The variants of a router.

    Attributes:
        declared: the way to call each model that is a variant or has parameters, by name.
    """

    __slots__ = ("declared",)
    name = "variants"
    declaration = dict[str, Variant]
    declared: Mapping[str, Variant]

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared = {}

    @classmethod
    def read(cls, wire: OnWire) -> dict[str, Variant] | None:
        """See Capability."""
        found = {
            name: Variant(model.variant_of, model.params)
            for name, model in wire.models.items()
            if model.variant_of is not None or model.params is not None
        }
        return found or None

    @classmethod
    def document_model(cls, declared: Mapping[str, Variant], model: str) -> dict[str, object]:
        """See Capability."""
        return to_builtins(declared[model]) if model in declared else {}

    @classmethod
    def route_fields(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        found = converted(kept, Named, "variants")
        told: dict[str, object] = {} if found.chosen is None else to_builtins(found.chosen)
        return told | ({"variants": to_builtins(found.others)} if found.others else {})

    def declare(self, declared: Mapping[str, Variant], *, now: float) -> None:
        """See Capability."""
        self.declared = declared

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability. The request's record keeps the variants of its models, so that a decision
        that is published again does not depend on later declarations.
        """
        others = self._others(choice, record)
        found = Named(
            self.declared.get(record.model),
            {name: self.declared[name] for name in others if name in self.declared},
        )
        if found.chosen is not None or found.others:
            record.keep(self.name, to_builtins(found))

    @staticmethod
    def _others(choice: Choice, record: RequestRecord) -> list[str]:
        """Return the other models of the plan, and those to try if the chosen one fails."""
        seen, plan = choice.seen, record.plan
        left = [
            k
            for k, (name, why) in enumerate(zip(seen.models, seen.excluded, strict=True))
            if why is None and name != record.model
        ]
        left.sort(key=seen.score, reverse=True)
        planned = () if plan is None else plan.steps
        found = [seen.models[k] for k in left[:NAMED]]
        named = [*(step.model for step in planned), *found]
        return [name for name in dict.fromkeys(named) if name != record.model]
