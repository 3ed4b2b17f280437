"""Read from the topics the requests that people are asked to label, and the labels that they
gave.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from doors.console.bus import Bus
from doors.console.changing_declarations import read_router
from doors.console.failures import Failure
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import absence_of
from doors.console.wanted_labels import Labelling, Wanted, WantedLabels
from schemas import MalformedEvent, RewardObserved, RouteDecided, decode

E = TypeVar("E", RouteDecided, RewardObserved)
TOPICS = (*STANDING, "routes", "rewards")
"""Topics that are read, and written."""


@dataclass(slots=True)
class AskedLabels:
    """The requests of one router that people are asked to label, and people's labels of its last
    requests.

    Attributes:
        wanted: the requests that people are asked about.
        others: requests with a label that nobody asked for, by their id.
    """

    router_id: str
    labelling: Labelling
    wanted: WantedLabels = field(default_factory=lambda: WantedLabels(most=None))
    others: dict[str, Wanted] = field(default_factory=dict)

    def request(self, request_id: str) -> Wanted:
        """Return a request, asked about or not."""
        found = self.wanted.get(request_id) or self.others.get(request_id)
        if found is None:
            found = self.others[request_id] = Wanted(self.router_id, request_id, "", 0.0)
        return found


async def asked_labels(
    bus: Bus, router_id: str, *, limit: int, tell: Callable[[int], object] = lambda read: None
) -> AskedLabels:
    """Return the requests among the last records that people are asked to label.

    Args:
        limit: most records that are read of a partition of decisions, and of one of labels.
        tell: called with the number of records read so far.

    Raises:
        Failure: the router is not declared.
    """
    declared = await read_router(bus, router_id)
    if declared is None:
        raise await absence_of(bus, router_id)
    found, read = AskedLabels(router_id, Labelling.of(declared.router)), 0
    async for decision in _events(bus, RouteDecided, "routes", router_id, limit):
        found.wanted.add(decision)
        tell(read := read + 1)
    async for label in _events(bus, RewardObserved, "rewards", router_id, limit):
        if _is_of_people(label, found.labelling):
            found.request(label.request_id or "").take(label)
        tell(read := read + 1)
    return found


def _is_of_people(event: RewardObserved, labelling: Labelling) -> bool:
    # A verdict has no source, and the label of a session no request.
    return event.request_id is not None and labelling.is_of_people(event.source or "")


async def _events(
    bus: Bus, kind: type[E], name: str, router_id: str, limit: int
) -> AsyncIterator[E]:
    key = router_id.encode()
    async for record in bus.backwards(name, router_id, limit=limit):
        if record.key == key:
            try:
                yield decode(kind, record.value)
            except MalformedEvent:
                continue  # refused by the worker, too


def not_asking(router_id: str) -> Failure:
    """Return the failure of a router that asks for no labels."""
    return Failure(
        f"router {router_id!r} asks for no labels. Say how many people can give: "
        f"`pbstream routers set {router_id} labels.want=50 labels.per=day`."
    )
