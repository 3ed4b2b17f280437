"""Define how a record keeps whether its label was asked for."""

from __future__ import annotations

from msgspec import Struct

from router_state.record import RequestRecord

NAME = "labels"
"""Names the budget of labels in a router's declaration, and `Wanted` in `Call.kept`."""


class Wanted(Struct, array_like=True, gc=False, frozen=True, omit_defaults=True):
    """Say whether a label was asked for.

    Attributes:
        probability: probability with which it was asked for; drawn: whether it was asked for.
        answered: whether a person has labelled the answer.
    """

    probability: float
    drawn: bool
    answered: bool = False


def wanted_of(record: RequestRecord) -> Wanted | None:
    """Return whether a label of a request was asked for; None: the router had no budget of labels
    when it decided. Raises DamagedState."""
    return record.kept_by(NAME, Wanted)
