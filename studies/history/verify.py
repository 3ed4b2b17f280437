"""Make the decisions of a history again, and compare them with the recorded ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import UNSET, convert
from msgspec.structs import astuple

from router_state import registered
from router_state.errors import RouterStateError, WrongContext
from router_state.record import RequestRecord
from studies.history.happened import Decided, Happened, Untold
from studies.history.reading import Decision, RecordedChoice
from studies.history.rerun import NoEngine, Rerun

TOLERANCE = 1e-9
"""Largest difference, relative or absolute: the sums of another BLAS differ in the last digits."""
NUMBERS = ("mean", "bonus", "penalty", "expected_cost_usd")
"""Numbers of a candidate that are compared; its score follows from them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first decision of a router that differs when it is made again. With `again` None the
    engine refused the request, and `refusal` says why.
    """

    recorded: Decision
    again: RequestRecord | None
    fields: tuple[str, ...]
    refusal: str = ""


@dataclass(slots=True)
class Verdict:
    """The outcome of a verification.

    Attributes:
        compared: number of decisions made again; equal: number of these that are the same;
            identical: number of those in which every number is equal to the bit.
        differences: the first difference of each router that has one.
        unprovable: routers that can't be verified, or only up to some decision, with the reason.
        doubts: records that the history lacks, by router; a later difference proves nothing.
    """

    compared: int = 0
    equal: int = 0
    identical: int = 0
    differences: dict[str, Difference] = field(default_factory=dict)
    unprovable: dict[str, str] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Tell whether every decision was made again, equally."""
        return self.equal == self.compared and not self.unprovable and self.compared > 0


@dataclass(frozen=True, slots=True)
class Part:
    """The decisions that are compared: by time in seconds since the epoch, and by first and last
    offset of `pb.routes`.
    """

    since: float = float("-inf")
    until: float = float("inf")
    offsets: tuple[int, int] | None = None

    def holds(self, event: Decided) -> bool:
        """Tell whether a decision belongs to it."""
        first, last = self.offsets or (0, event.offset)
        return self.since <= event.at < self.until and first <= event.offset <= last


EVERYTHING = Part()
"""The whole history, recognised by identity."""


def verify(
    happened: Iterable[Happened],
    rerun: Rerun,
    verdict: Verdict | None = None,
    *,
    part: Part = EVERYTHING,
) -> Verdict:
    """Run a history again with its own settings, and compare every decision of a part of it.

    A router is followed up to its first difference: after it, its state is another one. Decisions
    before the part are made again too, as they lead to its state, but are not compared. If the
    history lacks something that led to a decision, a difference is not provable.
    """
    verdict = verdict or Verdict()
    expected: dict[str, int] = {}
    differences, unprovable = verdict.differences, verdict.unprovable
    for event in happened:
        router_id = event.router_id
        if router_id in differences or router_id in unprovable:
            continue
        if type(event) is not Decided:
            if type(event) is Untold:
                verdict.doubts.setdefault(router_id, event.why)
            rerun.apply(event)
            continue
        decision = event.decision
        # Also at 1: the router was removed and declared again.
        if decision.seq not in (expected.get(router_id, 0) + 1, 1):
            first, last = expected.get(router_id, 0) + 1, decision.seq - 1
            unprovable[router_id] = (
                f"decisions {first} to {last} are not in the history, so its state is unknown "
                "from there on"
            )
            continue
        expected[router_id] = decision.seq
        _compare(event, rerun, verdict, part)
        if router_id in differences and router_id in verdict.doubts:
            del differences[router_id]
            # Not counted as compared: with the missing records it might be equal.
            verdict.compared -= 1
            unprovable[router_id] = (
                f"decision {decision.seq} comes out otherwise, and that proves nothing: "
                f"{verdict.doubts[router_id]}"
            )
    return verdict


def _compare(event: Decided, rerun: Rerun, verdict: Verdict, part: Part) -> None:
    decision = event.decision
    try:
        again = rerun.apply(event)
    except NoEngine as error:
        verdict.unprovable[event.router_id] = str(error)
        return
    except RouterStateError as error:
        verdict.compared += 1
        encoded_here = isinstance(error, WrongContext) and event.request.context is None
        remedy = (
            "; prompts are encoded again here: give the command the workers' PB_PROJECTION_PATH"
            if encoded_here
            else ""
        )
        verdict.differences[event.router_id] = Difference(
            decision, None, (), f"{error.reason}: {error}{remedy}"
        )
        return
    assert again is not None
    # Checked after it was applied, as its effect on the state is needed in any case.
    if part is not EVERYTHING and not part.holds(event):
        return
    # Compaction keeps the last declaration only, so the rerun may stand under another one.
    if again.config_offset != decision.config_offset:
        verdict.unprovable[event.router_id] = (
            f"declaration {decision.config_offset}, in force at decision {decision.seq}, is not "
            "in the history: "
            "pb.routers keeps only the last one of a router for long"
        )
        return
    verdict.compared += 1
    fields, identical = compare(decision, again)
    if fields:
        verdict.differences[event.router_id] = Difference(decision, again, fields)
        return
    verdict.equal += 1
    verdict.identical += identical


def compare(recorded: Decision, again: RequestRecord) -> tuple[tuple[str, ...], bool]:
    """Return which fields differ (numbers: by more than 1e-9 of their size), and whether all are
    equal to the bit.
    """
    if _is_identical(recorded, again):
        return (), True
    fields = [name for name in ("model", "seq") if getattr(recorded, name) != getattr(again, name)]
    if recorded.reason != again.reason:
        fields.append("reason")
    fields += _told_otherwise(recorded, again)
    numbers = [
        (name, getattr(recorded, name), getattr(again, name))
        for name in ("propensity", "expected_reward", "expected_cost_usd", "lambda_t")
    ]
    seen = again.candidates
    if recorded.candidates is not None and seen is not None:
        if tuple(c.model for c in recorded.candidates) != tuple(seen.models):
            fields.append("candidates")
        else:
            columns = (seen.mean, seen.bonus, seen.penalty, seen.expected_cost_usd)
            for k, candidate in enumerate(recorded.candidates):
                at_k = [
                    (name, getattr(candidate, name), column[k])
                    for name, column in zip(NUMBERS, columns, strict=True)
                ]
                # A decision of another program may name fewer numbers.
                numbers += [number for number in at_k if number[1] is not UNSET]
                if candidate.excluded != seen.excluded[k] and "excluded" not in fields:
                    fields.append("excluded")
    identical = True
    for name, was, now in numbers:
        if was != now:
            identical = False
            if (
                not math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
                and name not in fields
            ):
                fields.append(name)
    return tuple(fields), identical and not fields


def _told_otherwise(recorded: Decision, again: RequestRecord) -> list[str]:
    """Return which fields differ of those that capabilities tell."""
    told = registered.route_fields(again)
    would = told.get("would_route")
    now = {
        "routed_by": told.get("routed_by"),
        "routed_share": told.get("routed_share"),
        "would_route": None if would is None else convert(would, RecordedChoice),
        "label_wanted": told.get("label_wanted"),
        "label_probability": told.get("label_probability"),
    }
    return [name for name, value in now.items() if value != getattr(recorded, name)]


def _is_identical(recorded: Decision, again: RequestRecord) -> bool:
    """Tell whether a decision and its numbers are equal to the bit: the fast path, which nearly
    always holds.
    """
    if (
        recorded.model != again.model
        or recorded.seq != again.seq
        or recorded.reason != again.reason
        or recorded.lambda_t != again.lambda_t
        or recorded.propensity != again.propensity
        or recorded.expected_reward != again.expected_reward
        or recorded.expected_cost_usd != again.expected_cost_usd
    ):
        return False
    told = recorded.routed_by is not None or recorded.label_probability is not None
    if told and _told_otherwise(recorded, again):
        return False
    rows, seen = recorded.candidates, again.candidates
    return rows is None or seen is None or list(map(astuple, rows)) == seen.rows()
