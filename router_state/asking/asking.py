"""The capability of asking: people are asked to label some requests, within a budget of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Literal, Protocol

import orjson
from msgspec import Struct, structs, to_builtins

from router_state.arms import Arms
from router_state.asking.label_budget import LabelBudget
from router_state.asking.label_traffic import LabelTraffic
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.errors import DamagedState
from router_state.events import Judged
from router_state.packing.framing import Json, converted, decoded
from router_state.record import RequestRecord
from router_state.wanted import NAME, Wanted, wanted_of

PIECE = "\x1flabels"
"""Name of the piece that holds all of it."""
FLOOR = 0.25
"""Share of the labels that is divided evenly among the models. The rest is uniform over requests,
so no estimate over all requests has more than 1 ÷ (1 − 0.25) of its variance (Hesterberg 1995,
"Weighted average importance sampling and defensive mixture distributions").
"""
DEFAULT_PEOPLE = "human"
"""The source of people's labels, where the router declares no gold."""
MOST_ASKED_SHOWN = 64
"""Most models that are published: those that were asked about most."""


class LabelsOnWire(Protocol):
    """A budget of labels as it is declared."""

    want: int
    per: Literal["hour", "day", "week"]
    steps: int | None


class SourcesOnWire(Protocol):
    """Sources as they are declared."""

    gold: str


class OnWire(Protocol):
    """A router's declaration."""

    router_id: str
    label_url: str | None

    @property
    def labels(self) -> LabelsOnWire | None: ...
    @property
    def sources(self) -> SourcesOnWire | None: ...


class OfModel(Struct, array_like=True, gc=False):
    """Numbers of one model's decisions and of its labels by people.

    Attributes:
        decided: decisions for the model, with weights: those of a period weigh half as much as
            those of the next period.
        asked: labels that people were asked for, over all periods; answered: how many of these
            labels people gave.
        unasked: labels that people gave without being asked.
    """

    decided: float = 0.0
    asked: int = 0
    answered: int = 0
    unasked: int = 0


class Asked(Struct, gc=False):
    """The state of asking: the traffic, labels asked for in the present period, and counts by
    model."""

    traffic: LabelTraffic
    asked: int
    models: dict[str, OfModel]


class Asking(Capability):
    """The budget of labels of a router. It changes no decision.

    Attributes:
        declared: the budget.
        state: None before the first decision.
    """

    __slots__ = ("declared", "state")
    name = NAME
    declaration = LabelBudget
    declared: LabelBudget

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.state: Asked | None = None

    @classmethod
    def read(cls, wire: OnWire) -> LabelBudget | None:
        """See Capability."""
        labels, sources = wire.labels, wire.sources
        if labels is None:
            return None
        people = DEFAULT_PEOPLE if sources is None else sources.gold
        return LabelBudget(
            labels.want, labels.per, wire.router_id, people, labels.steps, wire.label_url
        )

    @classmethod
    def document(cls, declared: LabelBudget) -> dict[str, object]:
        """See Capability."""
        labels = {"want": declared.want, "per": declared.per, "steps": declared.steps}
        found: dict[str, object] = {
            "labels": {name: value for name, value in labels.items() if value is not None}
        }
        return found if declared.url is None else found | {"label_url": declared.url}

    def declare(self, declared: LabelBudget, *, now: float) -> None:
        """See Capability. A new number of labels keeps the counts; a new length of the period
        starts them anew.
        """
        before = getattr(self, "declared", None)
        self.declared = declared
        if before is not None and before.per != declared.per:
            self.state = None
            self.journal.pieces.add(PIECE)

    # A decision.

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        request_id = choice.request.request_id
        self._keep(record, self.draw(request_id, record.model, at=record.decided_at))

    def draw(self, request_id: str, name: str, *, at: float) -> Wanted:
        """Count a request that the model of this name answers, and draw whether a person is asked
        about it.

        Args:
            at: seconds since the epoch.
        """
        state = self._counted(at)
        model = state.models.setdefault(name, OfModel())
        probability = self._probability(state, model)
        drawn = self.declared.place(request_id) < probability
        model.decided += 1.0
        model.asked += drawn
        state.asked += drawn
        return Wanted(probability, drawn)

    def _counted(self, at: float) -> Asked:
        """Return the state with a request counted, in the period that it is of."""
        seconds, state = self.declared.seconds, self.state
        begins = self.declared.begins(at)
        if state is None:
            state = self.state = Asked(LabelTraffic.start(begins, at), 0, {})
        elif begins > state.traffic.begins:
            state.traffic.turn(begins, seconds)
            state.asked = 0
            for model in state.models.values():
                model.decided /= 2.0
        # The clock of another worker may be a little behind.
        state.traffic.count(max(at, state.traffic.at), seconds)
        return state

    def _probability(self, state: Asked, model: OfModel) -> float:
        """Return the probability with which a request is asked about that this model answers.

        What is left of the period's labels is spread over the requests that are left (Fan, Muller
        and Rezucha 1962, "Development of sampling plans by using sequential (item by item)
        selection techniques", where their number is known).
        """
        declared = self.declared
        now = declared.want * (1.0 - state.traffic.kept_back(declared.seconds))
        left = ceil(now) - state.asked
        if left <= 0:
            return 0.0
        even = left / (1.0 + state.traffic.left(declared.seconds))
        k, counts = len(state.models), [one.decided for one in state.models.values()]
        decided = sum(counts)
        if decided <= 0.0:
            return min(even, 1.0)

        def weight(count: float) -> float:
            """Return the weight of asking about a request of a model with this number of
            decisions. It is 1 if all models have equally many decisions."""
            return 1.0 - FLOOR + FLOOR * (decided + k) / (k * (count + 1.0))

        mean = sum(count * weight(count) for count in counts) / decided
        return min(even * weight(model.decided) / mean, 1.0)

    def _keep(self, record: RequestRecord, wanted: Wanted) -> None:
        self.journal.pieces.add(PIECE)
        record.keep(self.name, to_builtins(wanted))

    @classmethod
    def route_fields(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        wanted = converted(kept, Wanted, "whether a label was asked for")
        found: dict[str, object] = {"label_probability": wanted.probability}
        return found | {"label_wanted": True} if wanted.drawn else found

    # A label.

    def taken(self, record: RequestRecord, event: Judged, labels: object, now: float) -> None:
        """See Capability: count the answers that a person has labelled, by whether the label was
        asked for; an answer of which all labels are withdrawn counts no more."""
        wanted, state, is_of_people = wanted_of(record), self.state, self.declared.is_of_people
        if wanted is None or state is None or not is_of_people(event.source):
            return
        left = record.label is not None and is_of_people(record.label.source)
        answered = event.reward is not None or left
        if answered == wanted.answered:
            return
        model, one = state.models.setdefault(record.model, OfModel()), 1 if answered else -1
        # What was asked before the counts began anew, as when a model left, is not counted.
        if wanted.drawn:
            model.answered = min(max(model.answered + one, 0), model.asked)
        else:
            model.unasked = max(model.unasked + one, 0)
        self._keep(record, structs.replace(wanted, answered=answered))

    # Its state.

    def without(self, model: str) -> None:
        """See Capability."""
        if self.state is not None and self.state.models.pop(model, None) is not None:
            self.journal.pieces.add(PIECE)

    def start_over(self) -> None:
        """See Capability; what usual traffic is stays known."""
        if self.state is not None:
            self.state.asked, self.state.models = 0, {}

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return () if self.state is None else (PIECE,)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece != PIECE or self.state is None:
            return None
        return orjson.dumps(to_builtins(self.state))

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        body = piece(PIECE)
        self.state = decoded(body, Asked, "labels that were asked for") if body else None
        if self.state is not None and not self.state.traffic.is_sound:
            raise DamagedState("labels that were asked for: the parts of a period")

    def faults(self) -> Iterator[str]:
        """See Capability."""
        state = self.state
        if state is None:
            return
        asked = [one.answered <= one.asked and one.decided >= 0.0 for one in state.models.values()]
        if not (state.traffic.is_sound and state.asked >= 0 and all(asked)):
            yield "labels that were asked for"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability; `schemas.label_asking` has its fields."""
        declared, state = self.declared, self.state
        found: dict[str, object] = {"want": declared.want, "per": declared.per}
        if state is not None:
            models = sorted(state.models.items(), key=lambda one: (-one[1].asked, one[0]))
            found |= {
                "begins": datetime.fromtimestamp(state.traffic.begins, UTC),
                "asked": state.asked,
                "decided": sum(state.traffic.seen),
                "models": [
                    {
                        "model": name,
                        "asked": one.asked,
                        "answered": one.answered,
                        "unasked": one.unasked,
                    }
                    for name, one in models[:MOST_ASKED_SHOWN]
                ],
            }
        return {self.name: found}
