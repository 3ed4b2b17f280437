"""A partition's topics put back into the order in which its worker applied them.

Each topic is in order by itself. Across topics a decision says what the state contained when it was made: the last offsets of bills
and rewards, and the declaration in force. Decisions of older workers do not; then records go by their time. Either way nothing
comes before its own decision.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from schemas.event import MalformedEvent
from schemas.routers import RouterDeclared, decode_router
from streams.replay.account import Account
from streams.replay.reading import Bill, Decision, Request, Reward, read
from streams.replay.records import History, Record

MAX_WAITING = 100_000
REORDER = 1_000
END = 2**63


class Declared(NamedTuple):
    """A declaration comes in force; None: the router is gone."""

    router_id: str
    offset: int
    at: float
    router: RouterDeclared | None
    applied: tuple[int, int] = (-1, -1)


class Decided(NamedTuple):
    """A request got its decision; `expired` commitments had been given up by then, None where that is not known."""

    router_id: str
    offset: int
    request: Request
    decision: Decision
    at: float

    @property
    def expired(self) -> int | None:
        return None if self.decision.applied is None else self.decision.applied.expired


class Billed(NamedTuple):
    """A bill is booked."""

    router_id: str
    offset: int
    at: float
    bill: Bill


class Rewarded(NamedTuple):
    """A reward is learned."""

    router_id: str
    offset: int
    at: float
    reward: Reward


Happened = Declared | Decided | Billed | Rewarded
Feedback = Billed | Rewarded


class Cursor:
    """One topic's records of a partition, looked at one ahead."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self.head = next(records, None)

    def advance(self) -> None:
        """Move on."""
        self.head = next(self._records, None)


@dataclass(slots=True)
class Queue:
    """What of one router is read but not yet due."""

    declarations: deque[Declared] = field(default_factory=deque)
    bills: deque[Billed] = field(default_factory=deque)
    rewards: deque[Rewarded] = field(default_factory=deque)
    decided: int = 0
    early: dict[int, tuple[Record, Decision]] = field(default_factory=dict)
    orphans: OrderedDict[str, list[Feedback]] = field(default_factory=OrderedDict)
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)


class Merge:
    """Iterate over what happened on one partition.

    Args:
        refused: offsets of refused events by (short topic name, partition), see `records.refused_offsets`.
        router_id: only this router; None: all.
        account: takes what is left out.
    """

    def __init__(
        self,
        history: History,
        partition: int,
        *,
        refused: dict[tuple[str, int], set[int]],
        account: Account,
        router_id: str | None = None,
    ) -> None:
        self.partition = partition
        self._account = account
        self._only = router_id
        self._key = None if router_id is None else router_id.encode()
        self._refused = {topic: refused.get((topic, partition), set()) for topic in ("routers", "requests", "costs", "rewards")}
        self._cursors = {topic: Cursor(history.read(topic, partition)) for topic in ("routers", "requests", "costs", "rewards")}
        self._routes = history.read("routes", partition)
        self._requests: OrderedDict[tuple[str, str], Request] = OrderedDict()
        self._queues: dict[str, Queue] = {}

    def __iter__(self) -> Iterator[Happened]:
        for record in self._routes:
            decision = self._decoded("routes", record)
            if decision is not None:
                yield from self._in_order(record, decision)
        for queue in list(self._queues.values()):
            for record, decision in (queue.early[seq] for seq in sorted(queue.early)):
                yield from self._decide(queue, record, decision)
            queue.early.clear()
        yield from self._rest()

    def _in_order(self, record: Record, decision: Decision) -> Iterator[Happened]:
        """Emit a decision in its turn; answers that were given again are left out."""
        queue = self._queue(decision.router_id)
        if decision.seq == 1 and queue.decided and decision.request_id not in queue.seen:
            queue.decided = 0  # the router was gone and was declared anew
        if decision.repeat or decision.seq <= queue.decided:
            return
        queue.early[decision.seq] = record, decision
        if queue.decided == 0 and decision.seq > 1 and len(queue.early) > REORDER:
            queue.decided = min(queue.early) - 1
            self._account.skip("the decisions before this one are gone", f"routes offset {record.offset}, seq {queue.decided + 1}")
        if len(queue.early) > REORDER:
            missing = queue.decided + 1
            queue.decided = min(queue.early) - 1
            self._account.skip("decisions are missing", f"seq {missing} to {queue.decided} of router {decision.router_id}")
        while queue.decided + 1 in queue.early:
            yield from self._decide(queue, *queue.early.pop(queue.decided + 1))

    def _decide(self, queue: Queue, record: Record, decision: Decision) -> Iterator[Happened]:
        if decision.seq > queue.decided + 1:
            self._account.skip(
                "decisions are missing", f"seq {queue.decided + 1} to {decision.seq - 1} of router {decision.router_id}"
            )
        queue.decided = decision.seq
        at = decision.at
        yield from self._declare(queue, decision, at)
        costs, rewards = (None, None) if decision.applied is None else (decision.applied.costs, decision.applied.rewards)
        yield from self._feed(queue, costs, rewards, at)
        request = self._request(decision, record)
        if request is None:
            return
        queue.seen[decision.request_id] = None
        if len(queue.seen) > MAX_WAITING:
            queue.seen.popitem(last=False)
        yield Decided(decision.router_id, record.offset, request, decision, at)
        yield from queue.orphans.pop(decision.request_id, ())

    def _declare(self, queue: Queue, decision: Decision, at: float) -> Iterator[Happened]:
        """Put declarations in force up to the decision's, each after what was applied before it."""
        self._read("routers", decision.config_offset, at)
        while queue.declarations and queue.declarations[0].offset <= decision.config_offset:
            declared = queue.declarations.popleft()
            applied = decision.applied
            if applied is None:
                yield from self._feed(queue, None, None, min(declared.at, at))
                yield declared
                continue
            yield from self._feed(queue, applied.declared_costs, applied.declared_rewards, at)
            positions = applied.declared_costs, applied.declared_rewards
            yield Declared(declared.router_id, declared.offset, declared.at, declared.router, positions)

    def _feed(self, queue: Queue, costs: int | None, rewards: int | None, at: float) -> Iterator[Feedback]:
        """Emit the router's bills and rewards up to these offsets or, where they are not known, up to this time."""
        self._read("costs", costs, at)
        self._read("rewards", rewards, at)
        waiting: deque[Any]
        for waiting, last in ((queue.bills, costs), (queue.rewards, rewards)):
            while waiting and (waiting[0].offset <= last if last is not None else waiting[0].at <= at):
                yield from self._known(queue, waiting.popleft())

    def _known(self, queue: Queue, event: Feedback) -> Iterator[Feedback]:
        request_id = event.bill.request_id if isinstance(event, Billed) else event.reward.request_id
        if request_id in queue.seen:
            yield event
            return
        queue.orphans.setdefault(request_id, []).append(event)
        if len(queue.orphans) > MAX_WAITING:
            lost, _ = queue.orphans.popitem(last=False)
            self._account.skip("feedback of a request that has no decision", f"request {lost}")

    def _rest(self) -> Iterator[Happened]:
        """Emit what came after the last decision."""
        for topic in ("routers", "costs", "rewards"):
            self._read(topic, END, 0.0)
        for queue in self._queues.values():
            yield from queue.declarations
            rest: list[Feedback] = [*queue.bills, *queue.rewards]
            for event in rest:
                yield from self._known(queue, event)
            for request_id in queue.orphans:
                self._account.skip("feedback of a request that has no decision", f"request {request_id}")

    def _read(self, topic: str, last: int | None, at: float) -> None:
        """Read a topic up to an offset or, with None, up to a time, and put the records into the queues of their routers."""
        cursor, refused, only = self._cursors[topic], self._refused[topic], self._key
        while (record := cursor.head) is not None and (record.offset <= last if last is not None else record.timestamp <= at):
            cursor.advance()
            if record.offset in refused or (only is not None and record.key is not None and record.key != only):
                continue
            if topic == "routers":
                self._add_declaration(record)
            elif (event := self._decoded(topic, record)) is not None:
                queue = self._queue(event.router_id)
                if topic == "costs":
                    queue.bills.append(Billed(event.router_id, record.offset, record.timestamp, event))
                else:
                    queue.rewards.append(Rewarded(event.router_id, record.offset, record.timestamp, event))

    def _add_declaration(self, record: Record) -> None:
        try:
            router_id, router = decode_router(key=record.key, value=_raw(record.value))
        except MalformedEvent as error:
            self._account.skip(f"malformed ({error.reason.value})", f"routers-{self.partition} offset {record.offset}")
            return
        self._queue(router_id).declarations.append(Declared(router_id, record.offset, record.timestamp, router))

    def _request(self, decision: Decision, record: Record) -> Request | None:
        """Return the request of a decision, reading on until it is found."""
        wanted = decision.router_id, decision.request_id
        cursor = self._cursors["requests"]
        while (found := self._requests.pop(wanted, None)) is None and (read := cursor.head) is not None:
            cursor.advance()
            if read.offset in self._refused["requests"] or (self._key is not None and read.key not in (None, self._key)):
                continue
            request = self._decoded("requests", read)
            if request is None or request.request_id in self._queue(request.router_id).seen:
                continue
            self._requests.setdefault((request.router_id, request.request_id), request)
            if len(self._requests) > MAX_WAITING:
                (_, lost), _ = self._requests.popitem(last=False)
                self._account.skip("requests without a decision", f"request {lost}")
        if found is None:
            self._account.skip("decisions whose request is gone", f"routes-{self.partition} offset {record.offset}")
        return found

    def _decoded(self, topic: str, record: Record) -> Any:
        """Return the event of a record, or None where it is of another router or can't be read."""
        if self._key is not None and record.key is not None and record.key != self._key:
            return None
        try:
            event = read(topic, record)
        except MalformedEvent as error:
            self._account.skip(f"malformed ({error.reason.value})", f"{topic}-{self.partition} offset {record.offset}")
            return None
        return event if self._only is None or event.router_id == self._only else None

    def _queue(self, router_id: str) -> Queue:
        queue = self._queues.get(router_id)
        if queue is None:
            queue = self._queues[router_id] = Queue()
        return queue


def _raw(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else orjson.dumps(value)
