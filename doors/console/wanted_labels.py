"""Keep the requests that people are asked to label and the labels that they gave: for the
dashboard's inbox, and for `pbstream labels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from urllib.parse import quote

from schemas import RewardObserved, RouteDecided
from schemas.label_asking import DEFAULT_STEPS, REQUEST, LabelsWanted
from schemas.label_sources import PERSON, Sources

DEFAULT_PEOPLE = "human"
"""The source of people's labels, where the router declares no gold: as in the core."""
MOST = 500
"""Requests of a router that are kept, the newest ones: more than people label in a day."""
NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
"""Pattern of a person's name, which becomes part of a source."""
NOWHERE = frozenset({".", ".."})
"""Ids that no address can hold: browsers take them for steps within a path."""


class Declared(Protocol):
    """A router's declaration, or the part of one that says how people label."""

    @property
    def sources(self) -> Sources | None: ...
    @property
    def labels(self) -> LabelsWanted | None: ...
    @property
    def label_url(self) -> str | None: ...


class Labelling(NamedTuple):
    """The part of a router's declaration that says how people label.

    Attributes:
        people: the source of their labels.
        steps: answers from 0 to 1 that they choose from.
        url: address of a request's answer, with {request_id} in it; None: not said.
        asks: whether the router asks for labels.
    """

    people: str = DEFAULT_PEOPLE
    steps: int = DEFAULT_STEPS
    url: str | None = None
    asks: bool = False

    @classmethod
    def of(cls, router: Declared) -> Labelling:
        """Return the part of this declaration."""
        labels, sources = router.labels, router.sources
        return cls(
            DEFAULT_PEOPLE if sources is None else sources.gold,
            DEFAULT_STEPS if labels is None or labels.steps is None else labels.steps,
            router.label_url,
            labels is not None,
        )

    @property
    def rewards(self) -> list[float]:
        """The rewards that a person chooses from, the least first."""
        return [round(k / (self.steps - 1), 4) for k in range(self.steps)]

    def link(self, request_id: str) -> str | None:
        """Return the address of a request's answer; None where there is none."""
        if self.url is None or request_id in NOWHERE:
            return None
        return self.url.replace(REQUEST, quote(request_id, safe=""))

    def source(self, name: str | None) -> str:
        """Return the source of a person's labels; `name` None: the person is not named."""
        return self.people if name is None else f"{self.people}{PERSON}{name}"

    def is_of_people(self, source: str) -> bool:
        """Tell whether a label of this source is a person's."""
        return source == self.people or source.startswith(self.people + PERSON)


class GivenLabel(NamedTuple):
    """The last label of a person; `reward` None: withdrawn, or the person can't tell."""

    revision: int
    reward: float | None
    cant_tell: bool


@dataclass(slots=True)
class Wanted:
    """A request that people are asked to label; `given` holds the labels that they gave, by
    source.
    """

    router_id: str
    request_id: str
    model: str
    at: float
    probability: float | None = None
    given: dict[str, GivenLabel] = field(default_factory=dict)

    @classmethod
    def of(cls, decision: RouteDecided) -> Wanted:
        """Return the request of a decision."""
        return cls(
            decision.router_id,
            decision.request_id,
            decision.model,
            decision.decided_at.timestamp(),
            decision.label_probability,
        )

    def is_open(self, labelling: Labelling) -> bool:
        """Tell whether no person has labelled the answer yet, nor said that they can't tell."""
        people = (one for source, one in self.given.items() if labelling.is_of_people(source))
        return not any(one.reward is not None or one.cant_tell for one in people)

    def take(self, event: RewardObserved) -> bool:
        """Note a label; tell whether it says anything new."""
        assert event.source is not None
        before = self.given.get(event.source)
        if before is not None and event.revision <= before.revision:
            return False
        self.given[event.source] = GivenLabel(event.revision, event.reward, bool(event.cant_tell))
        return True

    def label(
        self, source: str, reward: float | None, *, cant_tell: bool = False
    ) -> RewardObserved:
        """Return a label as it is sent, which replaces what this source gave before."""
        before = self.given.get(source)
        revision = 0 if before is None else before.revision + 1
        return RewardObserved(
            router_id=self.router_id,
            request_id=self.request_id,
            reward=reward,
            source=source,
            # What withdraws needs a label to be above.
            revision=revision if reward is not None else max(revision, 1),
            cant_tell=cant_tell or None,
        )


class WantedLabels:
    """The requests of one router that people are asked about."""

    def __init__(self, most: int | None = MOST) -> None:
        self._most = most
        self._known: dict[str, Wanted] = {}

    def add(self, decision: RouteDecided) -> bool:
        """Remember a request if people are asked to label it; tell whether they are."""
        if not decision.label_wanted or decision.request_id in self._known:
            return False
        self._known[decision.request_id] = Wanted.of(decision)
        if self._most is not None and len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return True

    def take(self, event: RewardObserved) -> bool:
        """Note a label; tell whether its request is one of these and the label says anything
        new.
        """
        found = None if event.source is None else self._known.get(event.request_id or "")
        return found is not None and found.take(event)

    def get(self, request_id: str) -> Wanted | None:
        """Return a request; None if people are not asked to label it, or it is no longer
        remembered.
        """
        return self._known.get(request_id)

    def __iter__(self) -> Iterator[Wanted]:
        """Yield them, the newest first."""
        return iter(sorted(self._known.values(), key=lambda one: one.at, reverse=True))

    def open(self, labelling: Labelling, *, since: float) -> list[Wanted]:
        """Return the requests without a label, the newest first.

        Args:
            since: time of the oldest request that workers still remember, in seconds since the
                epoch; older ones are left out.
        """
        return [one for one in self if one.at >= since and one.is_open(labelling)]
