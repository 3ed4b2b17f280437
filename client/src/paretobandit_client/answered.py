"""Remember which model answered a request, for later reports without a model."""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED = 10_000
"""Most requests whose model is remembered; the oldest is forgotten first."""


class Answered:
    """The models that answered the last requests, by router and request id."""

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, router_id: str, request_id: str, model: str | None) -> None:
        """Remember a request's model; None: the one that was decided."""
        ref = (router_id, request_id)
        self._models.pop(ref, None)
        if model is not None:
            self._models[ref] = model
            if len(self._models) > REMEMBERED:
                self._models.popitem(last=False)

    def by(self, router_id: str, request_id: str) -> str | None:
        """Return a request's model, if it is remembered."""
        return self._models.get((router_id, request_id))
