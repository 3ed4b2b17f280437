"""Recompute what was learned: a new engine applies the topics' events in order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import cast

import numpy as np

from agents.table import keys
from router_state.changes import HEAD
from router_state.config import Vector
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.endings.endings import PIECE as ENDINGS
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.families.family_member import Family
from router_state.kernel import SAMPLE_PIECE
from router_state.latency.latency_target import Latency
from router_state.latency.timing import PIECE as LATENCY
from router_state.outages.availability import PIECE as AVAILABILITY
from router_state.packing.framing import Json, body_of, loads
from router_state.periods.hourly_traffic import SHAPE
from router_state.periods.ledger import PIECE as PERIODS
from router_state.periods.period_budgets import Periods
from router_state.router import RouterState
from router_state.sources.measured_sources import MeasuredSources
from router_state.state import state_pieces
from schemas.requests import RequestSubmitted
from schemas.topic_roles import SOURCES
from studies.audit.findings import Findings, Kind
from studies.audit.recovered_state import Evidence
from studies.audit.topic_reading import Progress
from studies.history.merge import Merge
from studies.history.reading import Decision
from studies.history.records import Record
from studies.history.rerun import Rerun, expire_oldest
from studies.history.skipped import Skipped
from studies.history.verify import Verdict, verify

TOLERANCE, ROUNDING = 1e-9, 1e-13
"""Largest differences, relative and absolute, of learned numbers, which are recomputed by the same
steps and differ by rounding alone. The absolute difference is for entries near 0, which are
differences of larger numbers.
"""
LEARNED_OF_HEAD = ("ema", "dual", "caps", "chance", "prices", "arms")
"""Parts of a router's head that decisions depend on; its sums are compared with the topics
elsewhere."""
SEEN_TO = ("feedback of a request that has no decision", "malformed", "requests without a decision")
"""Beginnings of a merge's reasons for leaving an event out, where another check covers that
event."""


class ContextGone(RouterStateError):
    """A prompt's context is no longer in the state."""

    reason = "context_gone"


class StateContexts:
    """Contexts of requests: as sent, or for prompts as the state keeps them."""

    def __init__(self, evidence: Evidence) -> None:
        self._table = evidence.state.table

    def of(self, request: RequestSubmitted, projection: object) -> Vector:
        """Return a request's context, shape (d,), as the worker made it."""
        if request.context is not None:
            return np.array(request.context)
        found = self._table.get(keys.key(keys.CONTEXT, request.router_id, request.request_id))
        if found is None:
            raise ContextGone("the context of a prompt is no longer in the state")
        # Not encoded again: another processor may differ in the last bit, and so in decisions.
        return np.frombuffer(found, "<f8")


class Contained:
    """One partition's topics up to the position of its state."""

    def __init__(self, evidence: Evidence, read: Progress) -> None:
        self._evidence = evidence
        self._read = read

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partition."""
        return [self._evidence.number]

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return the records of a topic, oldest first."""
        return iter(
            self._evidence.contained(topic, self._read)
            if topic in SOURCES
            else self._read(topic, partition)
        )


class LearnedCheck:
    """Recompute the routers of one partition and compare."""

    def __init__(self, evidence: Evidence, findings: Findings) -> None:
        self._evidence = evidence
        self._findings = findings

    def run(self, read: Progress, rerun: Rerun, skipped: Skipped) -> None:
        """Recompute everything, or report that the topics do not hold enough."""
        evidence = self._evidence
        refused = {
            # Waiting events were not applied either.
            (topic, evidence.number): evidence.letters[topic].keys()
            | evidence.waiting[topic].keys()
            for topic in SOURCES
        }
        merged = Merge(
            Contained(evidence, read),
            evidence.number,
            refused=refused,
            skipped=skipped,
            contains=self._contains,
            since={
                router_id: engine.state.since.text()
                for router_id, engine in evidence.engines.items()
            },
        )
        verdict = verify(merged, rerun, Verdict())
        for router_id, why in verdict.unprovable.items():
            self._findings.unprovable("learned", f"router {router_id}", why)
        for router_id, difference in verdict.differences.items():
            where = f"router {router_id} seq {difference.recorded.seq}"
            # The audit lacks the context that the worker had, so the decision can't be judged.
            if ContextGone.reason in difference.refusal:
                self._findings.unprovable("learned", where, difference.refusal)
            else:
                what = (
                    difference.refusal or f"comes out otherwise in {', '.join(difference.fields)}"
                )
                self._findings.violation(Kind.DECIDED_OTHERWISE, where, what)
        for reason, first in skipped.first.items():
            if not reason.startswith(SEEN_TO):
                what = f"{skipped.counts[reason]} × {reason} (first: {first})"
                self._findings.unprovable("history", f"partition {evidence.number}", what)
        for router_id, engine in evidence.engines.items():
            if router_id not in verdict.unprovable and router_id not in verdict.differences:
                self._compare(
                    router_id, engine, rerun.engines.get(router_id), verdict.doubts.get(router_id)
                )

    def _contains(self, decision: Decision) -> bool:
        """Tell whether the state contains a decision."""
        engine = self._evidence.engines.get(decision.router_id)
        # A decision under an older declaration belongs to an earlier incarnation.
        return engine is not None and (
            decision.seq <= engine.state.seq or decision.config_offset < engine.state.config.offset
        )

    def _compare(
        self, router_id: str, engine: Engine, again: Engine | None, doubt: str | None
    ) -> None:
        where = f"router {router_id}"
        if again is None:
            self._findings.unprovable("learned", where, "its declaration is no longer on the log")
            return
        self._findings.checked["routers_recomputed"] += 1
        differs = self._findings.violation
        if doubt is not None:
            # An event that led to the state is missing on the topics, so a difference proves
            # nothing.
            differs = partial(self._unproven, doubt)
        # Commitments that expired since the last decision.
        expire_oldest(again, max(engine.state.expired - again.state.expired, 0))
        for what in differing(engine.state, again.state):
            differs(Kind.LEARNED, where, f"{what} differs from its recomputation")
        for what in _pacing(engine.state, again.state):
            differs(Kind.LAMBDA, where, what)

    def _unproven(self, doubt: str, kind: Kind, where: str, what: str) -> None:
        self._findings.unprovable("learned", where, f"{what}: {doubt}")


def _pacing(found: RouterState, again: RouterState) -> Iterator[str]:
    """Yield the names of the parts of the pacing that differ from their recomputation."""
    terms = {"lambda_t": (found.lambda_t, again.lambda_t)}
    ours, theirs = (cast("dict[str, float]", state.pacer.terms()) for state in (found, again))
    terms |= {name: (float(ours[name]), float(theirs.get(name, math.nan))) for name in ours}
    windows = [0 if one.arms.window is None else one.arms.window.size for one in (found, again)]
    terms["window"] = float(windows[0]), float(windows[1])
    for name, (value, expected) in terms.items():
        if not math.isclose(value, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{name} is {value!r}, recomputed {expected!r}"


def differing(found: RouterState, again: RouterState) -> Iterator[str]:
    """Yield the names of learned pieces that differ from their recomputation."""
    ours, theirs = (_leaves(state) for state in (found, again))
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours or name not in theirs or not _alike(ours[name], theirs[name]):
            yield name.replace("\x1f", "")


def _leaves(state: RouterState) -> dict[str, list[Json]]:
    """Return a router's numbers and words by piece: everything learned, and the parts of the head
    that decisions depend on."""
    arms, latency, sources = state.arms, state.having(Latency), state.having(MeasuredSources)
    numbers = (
        SAMPLE_PIECE,
        arms.rewards.name,
        arms.bills.name,
        *arms.names,
        *(costs.regression.piece for costs in arms.costs),
        *(() if latency is None else latency.pieces[1:]),
        *((SHAPE,) if state.having(Periods) else ()),
        *(() if sources is None else sources.calibration.pieces),
    )
    found: dict[str, list[Json]] = {
        name: np.frombuffer(body_of(state_pieces.pack_piece(state, name) or b""), "<f8").tolist()
        for name in numbers
    }
    # The window is skipped: its contexts are as sent, and its other bytes are no numbers.
    family = state.having(Family)
    found |= {
        name: list(body_of(state_pieces.pack_piece(state, name) or b""))
        for name in (
            *(() if arms.window is None else arms.window.pieces),
            # What a family told is as it was on the topic.
            *(() if family is None else family.pieces),
        )
    }
    of_capabilities = {piece for one in state.capabilities for piece in one.pieces}
    # `check_periods` proves the accounts; refusals note there what the history does not hold.
    for name in {TOKENS, AVAILABILITY, LATENCY, *of_capabilities} - {PERIODS} - found.keys():
        piece = state_pieces.pack_piece(state, name)
        found[name] = list(_flat(_decisive(name, {} if piece is None else loads(piece))))
    head = loads(state_pieces.pack_piece(state, HEAD) or b"")
    # Whether a cap was found used up is such a note, see `_decisive`.
    head["caps"] = [numbers[:2] for numbers in head.get("caps", ())]
    return found | {f"{HEAD}:{part}": list(_flat(head.get(part))) for part in LEARNED_OF_HEAD}


def _decisive(name: str, value: Json) -> Json:
    """Return the part of a piece that decisions depend on. The rest notes that an alert was raised,
    perhaps by a refused request, which the history does not hold.
    """
    if name == AVAILABILITY and value:
        return value["models"]
    return value | {"told": {}} if name == ENDINGS and value else value


def _flat(value: Json) -> Iterator[Json]:
    """Return the leaves of a JSON value, in order."""
    if isinstance(value, dict):
        value = [leaf for pair in value.items() for leaf in pair]
    if not isinstance(value, list):
        yield value
        return
    for one in value:
        yield from _flat(one)


def _alike(ours: list[Json], theirs: list[Json]) -> bool:
    """Tell whether words are equal and numbers are equal within the tolerances."""
    return len(ours) == len(theirs) and all(
        one == other
        or (
            isinstance(one, float)
            and isinstance(other, float)
            and math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=ROUNDING)
        )
        for one, other in zip(ours, theirs, strict=True)
    )
