"""Merge a partition's topics into the order in which its worker applied them.

Each topic is in order by itself. Across topics a decision names the steps since the one before
(`router_state.since`). In a history that another program has written, decisions may name only the
last contained offset of each topic, or nothing: then records go by their time. In every case a
bill and a reward come after their decision.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from router_state.events import OfCapability
from router_state.since import Step, steps_of
from schemas.rewards import subject_of
from studies.history.happened import (
    Billed,
    Decided,
    Declared,
    Feedback,
    Happened,
    Rewarded,
    Swept,
    Untold,
)
from studies.history.queue import Queue
from studies.history.reading import Decision
from studies.history.records import History, Record
from studies.history.skipped import Skipped
from studies.history.source_events import (
    MAX_WAITING,
    Cursor,
    Decoder,
    Requests,
    grants_of,
    priors_of,
)

REORDER = 1_000
"""Most decisions that are held back for a missing one before it is reported."""
EVENTS_AT_ONCE = 100
"""Most events of one partition before another partition's turn."""
END = 2**63
"""An offset after every offset."""


class Merge:
    """Iterate over what happened on one partition.

    Args:
        refused: offsets of refused events by (short topic name, partition), see
            `records.refused_offsets`.
        router_id: only this router; None: all.
        skipped: counts skipped records.
        contains: function that tells which decisions belong to the history; by default all do.
        since: the steps after each router's last decision, if a state holds them.
    """

    def __init__(
        self,
        history: History,
        partition: int,
        *,
        refused: dict[tuple[str, int], set[int]],
        skipped: Skipped,
        router_id: str | None = None,
        contains: Callable[[Decision], bool] | None = None,
        since: Mapping[str, str] | None = None,
    ) -> None:
        self._contains = contains
        self._since = since or {}
        self._skipped = skipped
        self._decoder = Decoder(partition, router_id, skipped)

        def cursor(topic: str) -> Cursor:
            # Compaction leaves holes among declarations; a decision without its declaration is
            # reported anyway.
            where = None if topic == "routers" else f"{topic}-{partition}"
            found = refused.get((topic, partition), set())
            return Cursor(
                history.read(topic, partition), refused=found, where=where, skipped=skipped
            )

        self._cursors = {
            topic: cursor(topic) for topic in ("routers", "requests", "routes", "costs", "rewards")
        }
        self._requests = Requests(
            self._cursors["requests"], self._decoder, skipped, self._is_decided
        )
        self._queues: dict[str, Queue] = {}
        # By kind of step: what its topic says, by offset, once any was needed.
        self._said: dict[str, Mapping[int, OfCapability]] = {}
        self._read_said = {
            kind: partial(history.read, topic, partition)
            for kind, topic in (("l", "leases"), ("p", "kin"))
        }
        self._out: list[Happened] = []

    def __iter__(self) -> Iterator[Happened]:
        out, decode = self._out, self._decoder.event
        routes = self._cursors["routes"]
        while (record := routes.head) is not None:
            routes.advance()
            decision = decode("routes", record)
            if decision is not None and (self._contains is None or self._contains(decision)):
                self._in_order(record, decision)
            # Yielded in batches: switching generators costs more than handling many an event.
            if len(out) > EVENTS_AT_ONCE:
                yield from out
                out.clear()
        for queue in list(self._queues.values()):
            for record, decision in (queue.early[seq] for seq in sorted(queue.early)):
                self._decide(queue, record, decision)
            queue.early.clear()
        self._rest()
        yield from out
        out.clear()

    def _in_order(self, record: Record, decision: Decision) -> None:
        """Handle decisions in the order of seq; repeated answers are skipped."""
        queue, seq = self._queue(decision.router_id), decision.seq
        # Almost always: the next one, and none is missing.
        if seq == queue.decided + 1 and not queue.early and not decision.repeat and queue.decided:
            self._decide(queue, record, decision)
            return
        if (
            seq == 1
            and queue.decided
            and (
                decision.request_id not in queue.seen
                or decision.config_offset > queue.config_offset
            )
        ):
            queue.decided, queue.anew = 0, True  # the router was gone and was declared anew
        if decision.repeat or seq <= queue.decided:
            return
        # A worker that crashed before delivery sent its answers again later, so seq gives the
        # order, not the offset.
        queue.early[seq] = record, decision
        # The log begins in the middle of a router's life; earlier decisions were deleted, and are
        # not counted as missing.
        if queue.decided == 0 and seq > 1 and len(queue.early) > REORDER:
            queue.decided = min(queue.early) - 1
            self._skipped.skip(
                "the decisions before this one are gone",
                f"routes offset {record.offset}, seq {queue.decided + 1}",
            )
        if len(queue.early) > REORDER:
            missing = queue.decided + 1
            queue.decided = min(queue.early) - 1
            self._skipped.skip(
                "decisions are missing",
                f"seq {missing} to {queue.decided} of router {decision.router_id}",
            )
        while queue.decided + 1 in queue.early:
            self._decide(queue, *queue.early.pop(queue.decided + 1))

    def _decide(self, queue: Queue, record: Record, decision: Decision) -> None:
        if decision.seq > queue.decided + 1:
            self._skipped.skip(
                "decisions are missing",
                f"seq {queue.decided + 1} to {decision.seq - 1} of router {decision.router_id}",
            )
        at, request_id, applied = decision.at, decision.request_id, decision.applied
        self._lead_to(queue, decision, at)
        queue.decided, queue.config_offset = decision.seq, decision.config_offset
        offset = None if applied is None else applied.request
        request = self._requests.of(decision.router_id, request_id, offset)
        if request is None:
            self._skipped.skip(
                "decisions whose request is gone",
                f"routes-{self._decoder.partition} offset {record.offset}",
            )
            return
        session = request.session_id
        subjects = (request_id,) if session is None else (request_id, subject_of(None, session))
        queue.decide(subjects, decision.seq)
        while len(queue.seen) > MAX_WAITING:
            queue.seen.popitem(last=False)
        self._out.append(Decided(decision.router_id, record.offset, request, decision, at))
        if queue.orphans:
            queue.hold(subjects)

    def _lead_to(self, queue: Queue, decision: Decision, at: float) -> None:
        """Yield the events that were applied between the previous decision and this one."""
        applied = decision.applied
        if applied is None or applied.since is None:
            # As `apply_waiting` does in the worker: right after the decision for which they had
            # waited.
            if queue.held:
                self._out += queue.take_held()
        else:
            self._follow(queue, decision.router_id, applied.since, decision)
        # Behind recorded steps only events remain that changed nothing or wait; without steps this
        # gives the order.
        self._declare(queue, decision, at)
        if applied is None:
            self._feed_until(queue, at)
        else:
            self._feed(queue, applied.costs, applied.rewards)

    def _follow(
        self, queue: Queue, router_id: str, since: str, decision: Decision | None = None
    ) -> None:
        """Follow the recorded steps one by one."""
        try:
            steps = steps_of(since)
        except (ValueError, IndexError):
            steps = None
        if steps is None:
            where = "after the last decision"
            if decision is not None:
                where = f"before decision {decision.seq}"
            order = f"in which order bills, rewards and declarations were applied {where}"
            self._out.append(Untold(router_id, f"{order} was not kept"))
            self._out += queue.take_held()
            return
        for step in steps:
            self._take(queue, router_id, step, decision)
        queue.held.clear()

    def _take(self, queue: Queue, router_id: str, step: Step, decision: Decision | None) -> None:
        match step.kind:
            case "c":
                self._feed(queue, step.number, -1)
            case "r":
                self._feed(queue, -1, step.number)
            case "C":
                self._out += queue.take_named(Billed, step.number)
            case "R":
                self._out += queue.take_named(Rewarded, step.number)
            case "d":
                self._declare_at(queue, router_id, step, decision)
            case "l" | "p":
                self._take_over(router_id, step)
            case _:
                if step.kind == "f":
                    queue.forget_until(step.number)
                elif step.kind == "g":
                    queue.forget(step.seqs)
                self._out.append(Swept(router_id, step))

    def _take_over(self, router_id: str, step: Step) -> None:
        """Yield a grant of the router's pool or a prior of its family, or report that it is
        gone."""
        what = "grant" if step.kind == "l" else "prior"
        if step.kind not in self._said:
            records = self._read_said[step.kind]()
            self._said[step.kind] = grants_of(records) if step.kind == "l" else priors_of(records)
        found = self._said[step.kind].get(step.number)
        if found is None:
            self._out.append(Untold(router_id, f"the {what} at offset {step.number} is gone"))
        else:
            self._out.append(Swept(router_id, step._replace(grant=found)))

    def _declare_at(
        self, queue: Queue, router_id: str, step: Step, decision: Decision | None
    ) -> None:
        """Yield the declaration at an offset, or report that it is gone."""
        offset, positions = step.number, (-1, -1)
        applied = None if decision is None else decision.applied
        if decision is not None and applied is not None and offset == decision.config_offset:
            # A contained declaration without a step changed nothing, or belonged to an earlier
            # incarnation.
            positions = applied.declared_costs, applied.declared_rewards
        self._read_declarations(offset)
        declarations = queue.declarations
        while declarations and declarations[0].offset < offset:
            self._put_in_force(queue, declarations.popleft())
        self._feed(queue, *positions)
        if declarations and declarations[0].offset == offset:
            declared = declarations.popleft()
            at = declared.at if step.time is None else step.time
            self._put_in_force(queue, replace(declared, at=at, applied=positions))
        else:
            self._out.append(Untold(router_id, _compacted(f"the declaration at offset {offset}")))

    def _put_in_force(self, queue: Queue, declared: Declared) -> None:
        if declared.router is None:
            queue.anew = False
            queue.seen.clear()
        elif queue.anew:
            # Compaction removed the router's tombstone.
            gone = Declared(declared.router_id, declared.offset - 1, declared.at, None)
            self._put_in_force(queue, gone)
        self._out.append(declared)

    def _declare(self, queue: Queue, decision: Decision, at: float) -> None:
        """Yield declarations up to the decision's, each after the feedback that was applied before
        it."""
        routers = self._cursors["routers"]
        if routers.head is not None and routers.head.offset <= decision.config_offset:
            self._read_declarations(decision.config_offset)
        applied = decision.applied
        if (applied is None or applied.since is None) and routers.has_hole(
            queue.config_offset, decision.config_offset
        ):
            what = f"a record between offsets {queue.config_offset} and {decision.config_offset}"
            self._out.append(Untold(decision.router_id, _compacted(what)))
        while queue.declarations and queue.declarations[0].offset <= decision.config_offset:
            declared = queue.declarations.popleft()
            if applied is None:
                self._feed_until(queue, min(declared.at, at))
                self._put_in_force(queue, declared)
            else:
                positions = applied.declared_costs, applied.declared_rewards
                self._feed(queue, *positions)
                self._put_in_force(queue, replace(declared, applied=positions))

    def _feed(self, queue: Queue, costs: int, rewards: int) -> None:
        """Yield the router's bills and rewards up to these offsets."""
        self._feed_topic(queue, "costs", queue.bills, costs)
        self._feed_topic(queue, "rewards", queue.rewards, rewards)

    def _feed_topic(
        self, queue: Queue, topic: str, waiting: deque[Billed] | deque[Rewarded], last: int
    ) -> None:
        cursor = self._cursors[topic]
        while (record := cursor.head) is not None and record.offset <= last:
            cursor.advance()
            self._enqueue(topic, record)
        while waiting and waiting[0].offset <= last:
            self._known(queue, waiting.popleft())

    def _feed_until(self, queue: Queue, at: float) -> None:
        """Yield the router's bills and rewards up to this time."""
        for topic, waiting in (("costs", queue.bills), ("rewards", queue.rewards)):
            cursor = self._cursors[topic]
            while (record := cursor.head) is not None and record.timestamp <= at:
                cursor.advance()
                self._enqueue(topic, record)
            while waiting and waiting[0].at <= at:
                self._known(queue, waiting.popleft())

    def _known(self, queue: Queue, event: Feedback) -> None:
        """Yield feedback of a decided request; other feedback waits for its decision."""
        request_id = event.bill.request_id if type(event) is Billed else event.reward.subject
        if request_id in queue.seen:
            self._out.append(event)
            return
        queue.wait(request_id, event)
        if len(queue.orphans) > MAX_WAITING:
            lost, _ = queue.orphans.popitem(last=False)
            self._skipped.skip("feedback of a request that has no decision", f"request {lost}")

    def _rest(self) -> None:
        """Yield the events after the last decision."""
        for router_id, since in self._since.items():
            self._follow(self._queue(router_id), router_id, since)
        self._read_declarations(END)
        for topic in ("costs", "rewards"):
            cursor = self._cursors[topic]
            while (record := cursor.head) is not None:
                cursor.advance()
                self._enqueue(topic, record)
        for queue in self._queues.values():
            self._out += queue.take_held()
            for declared in queue.declarations:
                self._put_in_force(queue, declared)
            queue.declarations.clear()
            rest: list[Feedback] = [*queue.bills, *queue.rewards]
            for event in rest:
                self._known(queue, event)
            for request_id in queue.orphans:
                self._skipped.skip(
                    "feedback of a request that has no decision", f"request {request_id}"
                )

    def _read_declarations(self, last: int) -> None:
        cursor = self._cursors["routers"]
        while (record := cursor.head) is not None and record.offset <= last:
            cursor.advance()
            declared = self._decoder.declaration(record)
            if declared is not None:
                self._queue(declared.router_id).declarations.append(declared)

    def _enqueue(self, topic: str, record: Record) -> None:
        """Put a record into the queue of its router."""
        event: Any = self._decoder.event(topic, record)
        if event is None:
            return
        queue = self._queue(event.router_id)
        if topic == "costs":
            queue.bills.append(Billed(event.router_id, record.offset, record.timestamp, event))
        else:
            queue.rewards.append(Rewarded(event.router_id, record.offset, record.timestamp, event))

    def _is_decided(self, router_id: str, request_id: str) -> bool:
        return request_id in self._queue(router_id).seen

    def _queue(self, router_id: str) -> Queue:
        queue = self._queues.get(router_id)
        if queue is None:
            queue = self._queues[router_id] = Queue()
        return queue


def _compacted(what: str) -> str:
    return f"{what} of pb.routers is gone: the topic is compacted, and keeps the last of a router"
