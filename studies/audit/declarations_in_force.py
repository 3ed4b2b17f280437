"""Check that the last accepted declaration is in force, and that published values equal the
state's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from router_state.router import RouterState
from schemas.event import MalformedEvent, decode
from schemas.lambdas import LambdaUpdated
from schemas.routers import decode_router
from studies.audit.findings import Findings, Kind
from studies.audit.incarnations import Ends
from studies.audit.recovered_state import Evidence
from studies.audit.topic_reading import Progress
from studies.history.records import Record

COUNTERS = ("seq", "decided", "settled", "expired", "rewards_applied", "in_flight", "config_offset")
"""Fields of `pb.lambda` that must equal the state's."""
AMOUNTS = ("lambda_t", "spend_usd", "committed_usd", "unmatched_cost_usd")
"""Fields of `pb.lambda` that must equal the state's up to `TOLERANCE`."""
TOLERANCE = 1e-9
"""Largest difference of numbers that count as equal, as in `explained`."""


def check_declarations(
    evidence: Evidence, read: Progress, findings: Findings, *, partition_of: Callable[[str], int]
) -> Ends:
    """Compare declarations with those in force; return the offsets of tombstones."""
    ends = Ends()
    in_force: dict[str, int] = {}
    for record in _noting_holes(evidence.contained("routers", read), ends.holes):
        findings.checked["routers_declared"] += 1
        where = f"routers-{evidence.number} offset {record.offset}"
        refused = (
            evidence.check_letter("routers", record, findings)
            or record.offset in evidence.waiting["routers"]
        )
        try:
            router_id, declared = decode_router(key=record.key, value=record.value)
        except MalformedEvent as error:
            if not refused:
                findings.violation(
                    Kind.LETTER_MISSING,
                    where,
                    f"a malformed declaration ({error.reason.value}) without one",
                )
            continue
        # A refused declaration changes nothing, and a stray one is put in force by its own
        # partition.
        if refused or partition_of(router_id) != evidence.number:
            continue
        if declared is None:
            ends.gone.setdefault(router_id, []).append(record.offset)
            in_force.pop(router_id, None)
        else:
            in_force[router_id] = record.offset
    found = {
        router_id: engine.state.config.offset for router_id, engine in evidence.engines.items()
    }
    for router_id in in_force.keys() | found.keys():
        if in_force.get(router_id) != found.get(router_id):
            what = (
                f"offset {found.get(router_id)} is in force, {in_force.get(router_id)} was declared"
            )
            findings.violation(Kind.DECLARATION, f"router {router_id}", what)
    return ends


def _noting_holes(records: Iterable[Record], holes: list[tuple[int, int]]) -> Iterator[Record]:
    expected = 0
    for record in records:
        if record.offset != expected:
            holes.append((expected, record.offset))
        expected = record.offset + 1
        yield record


def check_published(evidence: Evidence, read: Progress, findings: Findings) -> None:
    """Compare each router's last `pb.lambda` with its state, if both are of the same moment."""
    last: dict[str, tuple[LambdaUpdated, float]] = {}
    for record in read("lambda", evidence.number):
        findings.checked["lambda"] += 1
        if record.value is None and record.key is not None:
            last.pop(record.key.decode(errors="replace"), None)
            continue
        try:
            shown = decode(LambdaUpdated, record.value)
        except MalformedEvent as error:
            findings.violation(
                Kind.MALFORMED, f"lambda-{evidence.number} offset {record.offset}", str(error)
            )
            continue
        last[shown.router_id] = shown, record.timestamp
    # Not a violation: the tombstone is published after the state is durable, and may be on its way.
    for router_id in last.keys() - set(evidence.state.routers):
        findings.unprovable(
            "published",
            f"router {router_id}",
            "pb.lambda has no tombstone of it yet, and it is gone",
        )
    for router_id, engine in evidence.engines.items():
        state, where = engine.state, f"router {router_id}"
        if router_id not in last:
            findings.unprovable("published", where, "nothing was published yet")
            continue
        shown_last, at = last[router_id]
        truth = {"seq": state.seq, "decided": state.seq, "config_offset": state.config.offset}
        truth |= {name: getattr(state, name) for name in COUNTERS if name not in truth}
        behind = [name for name, value in truth.items() if getattr(shown_last, name) != value]
        # `pb.lambda` is published now and then, not with each event: amounts compare only at the
        # same counts.
        if behind:
            findings.unprovable(
                "published", where, f"pb.lambda shows another moment ({', '.join(behind)})"
            )
            continue
        apart = [name for name in AMOUNTS if not _same(shown_last, state, name)]
        if apart and (why := _another_moment(evidence, router_id, shown_last, at=at)):
            findings.unprovable("published", where, f"pb.lambda shows another moment ({why})")
            continue
        for name in apart:
            what = (
                f"{name}: {getattr(shown_last, name)!r} was published, "
                f"{getattr(state, name)!r} is in the state"
            )
            findings.violation(Kind.PUBLISHED, where, what)


def _same(shown: LambdaUpdated, state: RouterState, name: str) -> bool:
    return math.isclose(
        getattr(shown, name), getattr(state, name), rel_tol=TOLERANCE, abs_tol=TOLERANCE
    )


def _another_moment(
    evidence: Evidence, router_id: str, shown: LambdaUpdated, *, at: float
) -> str | None:
    """Return a reason why amounts of the state may differ from those published `at` a time
    although all counts are equal; None: there is none.

    A revised bill moves amounts alone, and so does one without a request, which is booked by the
    clock.
    """
    if at < evidence.written[router_id]:
        return "the state was written later"
    if shown.applied is not None and any(
        offset != evidence.watermarks.get(topic, -1)
        for topic, offset in shown.applied.model_dump().items()
    ):
        return "applied"
    if any(parked.router_id == router_id for parked in evidence.state.parking):
        return "events wait"
    return None
