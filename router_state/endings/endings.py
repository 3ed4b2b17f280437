"""The capability of endings: models that retire, are gone, or are answered for by another one.

Any router may need this capability: bills report what is gone and who answered. Time is that of
decisions, so a replay decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf, isfinite
from typing import Protocol

import orjson
from msgspec import Struct, field, structs, to_builtins

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.endings import ending
from router_state.endings.ending import NOTHING, Ending
from router_state.instants import utc
from router_state.kernel import BELIEVED, Arm
from router_state.packing.framing import Json, decoded
from router_state.record import PLAIN

PIECE = "\x1fendings"
"""Name of the piece of state, which exists while there is anything to remember."""
GONE = "gone"
"""Status of a bill, and reason of exclusion, of a model that its provider has no more."""
SECONDS_A_DAY = 86_400.0
"""Seconds of a day."""
ALERTED_BEFORE = 14.0 * SECONDS_A_DAY
"""Seconds before a model retires at which an alert is raised: the two weeks that a successor needs
to be tried."""
LAST_DAYS = 7.0 * SECONDS_A_DAY
"""Seconds before a model retires in which no trials are spent on it."""
FIRST_CALLS = 20
"""Answers up to which a model's calls are trials: as many as onboarding makes by default."""
FEW_REDIRECTS = 3
"""Redirected answers of one name after which an alert is raised: one may be a mistake."""


class Redirect(Struct, array_like=True):
    """The name that answered for a model, and the number of answers under that name."""

    name: str
    count: int
    since: float


class _Kept(Struct, omit_defaults=True):
    """The state as stored: since when models are gone, who answers for which, the ends of models
    that alerts were raised for, and the answers of models that retire, up to `FIRST_CALLS`."""

    gone: dict[str, float] = {}
    redirects: dict[str, Redirect] = {}
    alerted: dict[str, float] = field(default_factory=dict, name="told")
    calls: dict[str, int] = {}


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def models(self) -> Mapping[str, ending.ModelOnWire]: ...


class Endings(Capability):
    """The endings of a router's models.

    Attributes:
        declared: declared endings, by model. kept: the endings that bills and the clock have shown.
        watched_from: time from which some model has to be looked at; infinity: none.
    """

    __slots__ = ("declared", "kept", "watched_from")
    name = "endings"
    declaration = dict[str, Ending]
    undeclared = True
    declared: Mapping[str, Ending]

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared, self.kept, self.watched_from = {}, _Kept(), inf

    @classmethod
    def read(cls, wire: OnWire) -> dict[str, Ending] | None:
        """See Capability."""
        found = {name: ending.read(model) for name, model in wire.models.items()}
        return {name: one for name, one in found.items() if one is not None} or None

    @classmethod
    def document_model(cls, declared: Mapping[str, Ending], model: str) -> dict[str, object]:
        """See Capability."""
        return ending.document(declared[model]) if model in declared else {}

    def declare(self, declared: Mapping[str, Ending] | None, *, now: float) -> None:
        """See Capability: models that are declared again are called again."""
        self.declared = declared or {}
        ends = [one.retires_at for one in self.declared.values() if one.retires_at is not None]
        self.watched_from = min(ends, default=inf) - ALERTED_BEFORE
        there = {arm.name for arm in self.arms if arm.retired_at is None}
        self._keep(
            structs.replace(
                self.kept,
                gone={},
                redirects={name: one for name, one in self.kept.redirects.items() if name in there},
                alerted={
                    name: at for name, at in self.kept.alerted.items() if self._end(name) == at
                },
                calls={arm.name: self._calls(arm) for arm in self.arms if self._end(arm.name)},
            )
        )

    def _calls(self, arm: Arm) -> int:
        """Return how many answers of a model are known, up to `FIRST_CALLS`."""
        if arm.name in self.kept.calls:
            return self.kept.calls[arm.name]
        # Of a declared mean cost, `BELIEVED` bills are no bills.
        return FIRST_CALLS if arm.costs.bills >= BELIEVED + FIRST_CALLS else 0

    def _end(self, name: str) -> float | None:
        return self.declared.get(name, NOTHING).retires_at

    def _keep(self, kept: _Kept) -> None:
        if kept != self.kept:
            self.kept = kept
            self.journal.pieces.add(PIECE)

    def rule_out(self, choice: Choice) -> None:
        """See Capability; if no model would be left, none is ruled out."""
        at = choice.at
        if not self.kept.gone and at < self.watched_from:
            return
        found = [
            before or self._why(name, at)
            for name, before in zip(self.arms.names, choice.excluded, strict=True)
        ]
        if found != choice.excluded and None in found:
            choice.limit(found, self.arms.names)

    def _why(self, name: str, at: float) -> str | None:
        """Return why a model is not to be called, or None; raise an alert on its end in time."""
        if name in self.kept.gone:
            return GONE
        end = self._end(name)
        if end is None or at < end - ALERTED_BEFORE:
            return None
        if self.kept.alerted.get(name) != end:
            self._keep(structs.replace(self.kept, alerted={**self.kept.alerted, name: end}))
            days = max((end - at) / SECONDS_A_DAY, 0.0)
            evidence = {"retires_at": utc(end).isoformat(), "advice": _advice(name)}
            self.journal.alert(
                "model_retires", days, evidence, now=at, direction="down", model=name
            )
        if at >= end:
            return "past_its_end"
        trial = self.kept.calls.get(name, 0) < FIRST_CALLS
        return "retires_soon" if trial and at >= end - LAST_DAYS else None

    def billed(self, billing: Billing) -> None:
        """See Capability."""
        event, called = billing.event, billing.called
        if event.status == GONE:
            self._lose(called, billing)
        elif not billing.unanswered:
            if not billing.answered and self.kept.calls.get(called, FIRST_CALLS) < FIRST_CALLS:
                calls = {**self.kept.calls, called: self.kept.calls[called] + 1}
                self._keep(structs.replace(self.kept, calls=calls))
            if event.answered_by is not None:
                self._answered(called, event.answered_by, billing)

    def _lose(self, called: str, billing: Billing) -> None:
        """Rule a model out. A call of an earlier declaration does not count: the model has been
        declared again since."""
        if called in self.kept.gone or called not in self.arms.row:
            return
        if billing.record.config_offset < self.offset:
            return
        self._keep(structs.replace(self.kept, gone={**self.kept.gone, called: billing.now}))
        evidence = {"request_id": billing.event.request_id, "advice": _advice(called)}
        self.journal.alert(
            "model_gone", 1.0, evidence, now=billing.now, direction="down", model=called
        )

    def _answered(self, called: str, name: str, billing: Billing) -> None:
        """Note who answered a call."""
        record, redirects = billing.record, self.kept.redirects
        call = record.call or PLAIN
        if self.declared.get(called, NOTHING).is_answer(called, name):
            if record.is_redirected:
                call = structs.replace(call, redirected=None)
                record.call = None if call == PLAIN else call
            if called in redirects:
                left = {one: found for one, found in redirects.items() if one != called}
                self._keep(structs.replace(self.kept, redirects=left))
            return
        billing.redirected = True
        if record.is_redirected and call.redirected == name:
            return
        record.call = structs.replace(call, redirected=name)
        before = redirects.get(called)
        if before is None or before.name != name:
            before = Redirect(name, 0, billing.now)
        found = Redirect(name, before.count + 1, before.since)
        if called not in self.arms.row:
            return
        self._keep(structs.replace(self.kept, redirects={**redirects, called: found}))
        if found.count == FEW_REDIRECTS:
            evidence = {
                "answered_by": name,
                "answers": found.count,
                "advice": _advice(called, new=name),
            }
            self.journal.alert(
                "model_redirected",
                float(found.count),
                evidence,
                now=billing.now,
                since=found.since,
                model=called,
            )

    def without(self, model: str) -> None:
        """See Capability."""
        parts = structs.asdict(self.kept)
        self._keep(_Kept(**{name: _without(part, model) for name, part in parts.items()}))

    def start_over(self) -> None:
        """See Capability: what was gone at the time of the export is tried again."""
        self._keep(_Kept(calls=self.kept.calls))

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return () if self.kept == _Kept() else (PIECE,)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece != PIECE or self.kept == _Kept():
            return None
        return orjson.dumps(to_builtins(self.kept))

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(PIECE):
            self.kept = decoded(kept, _Kept, "endings")

    def faults(self) -> Iterator[str]:
        """See Capability."""
        kept = self.kept
        times = (
            *kept.gone.values(),
            *kept.alerted.values(),
            *(r.since for r in kept.redirects.values()),
        )
        if not all(map(isfinite, times)) or any(one.count < 1 for one in kept.redirects.values()):
            yield "endings of models"
        if not all(0 <= count <= FIRST_CALLS for count in kept.calls.values()):
            yield "first calls of models that retire"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability."""
        return {"gone": sorted(self.kept.gone)} if self.kept.gone else {}


def _without(part: Mapping[str, Json], model: str) -> dict[str, Json]:
    return {name: one for name, one in part.items() if name != model}


def _advice(model: str, new: str = "NEW") -> str:
    """Return the command that lets a successor start from what is known of a model."""
    return f"pbstream models add {new} --like {model}"
