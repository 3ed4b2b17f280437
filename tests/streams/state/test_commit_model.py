"""The commit protocol as a model, explored exhaustively: whatever crashes, waits, is refused or is
answered late, nothing is said that is not durable, and every event is contained once.

The model is a partition of `pb.requests` and one of `pb.costs`, a changelog, and workers that take
over from each other while the ones before them may still be at work. A decision depends on how many
bills the state contained, so two workers that apply events in another order decide differently.
A network keeps what was handed over: it lands, or not, also after its worker is gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import pytest

UNDER_WAY = 2
"""Groups of a worker that are not durable."""
MOST_STATES = 2_000_000
"""The explorer gives up beyond it; there are fewer."""

Offsets = tuple[int, int]
"""How many requests, and how many bills, something contains."""

SENT, GONE, LANDED, DURABLE, ANSWERED = "sent", "gone", "landed", "durable", "answered"
READING, OWNER, DEAD = "reading", "owner", "dead"


class Size(NamedTuple):
    """Owners of the partition, one after the other, and events of each topic."""

    workers: int
    requests: int
    bills: int


class Entry(NamedTuple):
    """A record batch of the changelog; a fence where it contains nothing new."""

    epoch: int
    start: Offsets
    end: Offsets


class Flight(NamedTuple):
    """A group of a worker: where its record batch has to land, and how far it is."""

    entry: Entry
    expected: int
    phase: str = SENT
    at: int = -1


class Worker(NamedTuple):
    """An owner: what its memory contains, where its next batch must land, what is under way, and
    what it answers again of what it has found contained."""

    epoch: int
    state: Offsets
    following: int
    flights: tuple[Flight, ...] = ()
    status: str = READING
    repeats: tuple[tuple[int, int], ...] = ()


class World(NamedTuple):
    """Everything there is; `answers` holds (request, decision)."""

    log: tuple[Entry, ...] = ()
    workers: tuple[Worker, ...] = ()
    committed: Offsets = (0, 0)
    answers: frozenset[tuple[int, int]] = frozenset()


def contained(log: tuple[Entry, ...], *, drop_stale: bool = True) -> tuple[int, Offsets, list[int]]:
    """Recover: the last owner's epoch, what the state contains, and the decisions.

    Raises:
        AssertionError: an event is contained twice, or there is a hole.
    """
    epoch, state, decisions = 0, (0, 0), list[int]()
    for entry in log:
        if entry.epoch < epoch and drop_stale:
            continue
        epoch = max(epoch, entry.epoch)
        if entry.end != entry.start:
            assert entry.start == state, f"{entry} follows {state}"
            # Requests before bills, as in a group.
            decisions += [state[1]] * (entry.end[0] - entry.start[0])
            state = entry.end
    return epoch, state, decisions


class Protocol:
    """What may happen next; `without` names a rule that is left out."""

    def __init__(self, size: Size, without: str = "") -> None:
        self.size = size
        self._without = without

    def following(self, world: World) -> Iterator[World]:
        """Return what the world may be like after one more step."""
        if len(world.workers) < self.size.workers:
            yield self._begin(world)
        for at, worker in enumerate(world.workers):
            yield from self._network(world, at, worker)
            if worker.status == READING:
                yield self._fence(world, at, worker)
            if worker.status == OWNER:
                yield from self._work(world, at, worker)
            if worker.status != DEAD:  # killed, or ended by what it does not understand
                yield _with(world, at, self._dead(worker))

    def _begin(self, world: World) -> World:
        """Another worker is given the partition, whether the one before is gone or only frozen."""
        epoch, state, decisions = contained(world.log, drop_stale=self._without != "epochs")
        again = tuple((n, decisions[n]) for n in range(world.committed[0], state[0]))
        worker = Worker(epoch, state, len(world.log), repeats=again)
        return world._replace(workers=(*world.workers, worker))

    def _fence(self, world: World, at: int, worker: Worker) -> World:
        """Write the epoch; another writer since the log was read means to end."""
        epoch, following = worker.epoch + 1, len(world.log)
        owns = following == worker.following or self._without == "offsets"
        fenced = worker._replace(epoch=epoch, following=following + 1, status=OWNER)
        entry = Entry(epoch, worker.state, worker.state)
        after = world._replace(log=(*world.log, entry))
        return _with(after, at, fenced if owns else self._dead(fenced))

    def _dead(self, worker: Worker) -> Worker:
        """Of a worker that is gone only those batches stay that the network has."""
        waiting = [f for f in worker.flights if f.phase in (SENT, GONE, LANDED)]
        if self._without != "one at a time":
            waiting = waiting[:1]
        return Worker(0, (0, 0), 0, tuple(f for f in waiting if f.phase == SENT), DEAD)

    def _network(self, world: World, at: int, worker: Worker) -> Iterator[World]:
        """The oldest batch that was handed over lands behind whatever is there, or is lost."""
        for n, flight in enumerate(worker.flights):
            if flight.phase in (GONE, LANDED) and self._without != "one at a time":
                return  # the next one is written when this one is known to be there
            if flight.phase == SENT:
                after = world._replace(log=(*world.log, flight.entry))
                if worker.status == DEAD:
                    left = worker._replace(flights=worker.flights[1:])
                    yield _with(after, at, left)
                    yield _with(world, at, left)
                else:
                    landed = flight._replace(phase=LANDED, at=len(world.log))
                    yield _fly(after, at, n, landed)
                    yield _fly(world, at, n, flight._replace(phase=GONE))
                return

    def _work(self, world: World, at: int, worker: Worker) -> Iterator[World]:
        flights = worker.flights
        if worker.repeats:
            answers = world.answers | {worker.repeats[0]}
            repeated = worker._replace(repeats=worker.repeats[1:])
            yield _with(world._replace(answers=answers), at, repeated)
            return
        under_way = [f for f in flights if f.phase in (SENT, GONE, LANDED)]
        if len(under_way) < UNDER_WAY:
            yield from self._apply(world, at, worker)
        for n, flight in enumerate(flights):
            if flight.phase in (GONE, LANDED):
                yield self._hear(world, at, n)
                break
            if flight.phase == SENT:
                break
        for n, flight in enumerate(flights):
            said = flight.phase == DURABLE or (
                self._without == "acknowledgement" and flight.phase in (SENT, LANDED)
            )
            if said:
                yield self._answer(world, at, n)
        if flights and any(f.phase == ANSWERED for f in flights):
            yield from self._finish(world, at)

    def _apply(self, world: World, at: int, worker: Worker) -> Iterator[World]:
        """Take a group of what is there."""
        (requests, bills), following = worker.state, worker.following
        _, most_requests, most_bills = self.size
        for end in product(range(requests, most_requests + 1), range(bills, most_bills + 1)):
            if end != worker.state:
                flight = Flight(Entry(worker.epoch, worker.state, end), following)
                yield _with(
                    world,
                    at,
                    worker._replace(
                        state=end, following=following + 1, flights=(*worker.flights, flight)
                    ),
                )

    def _hear(self, world: World, at: int, n: int) -> World:
        """Hear of the oldest batch where it landed; not where it had to, or nowhere, means to
        end."""
        worker = world.workers[at]
        flight = worker.flights[n]
        lands = flight.phase == LANDED and (
            flight.at == flight.expected or self._without == "offsets"
        )
        if not lands:
            return _with(world, at, self._dead(worker))
        return _fly(world, at, n, flight._replace(phase=DURABLE))

    def _answer(self, world: World, at: int, n: int) -> World:
        flight = world.workers[at].flights[n]
        start, end = flight.entry.start, flight.entry.end
        said = {(request, start[1]) for request in range(start[0], end[0])}
        answered = flight._replace(phase=ANSWERED)
        return _fly(world._replace(answers=world.answers | said), at, n, answered)

    def _finish(self, world: World, at: int) -> Iterator[World]:
        """Let offsets be committed: of the oldest group that is answered, if all before it are."""
        worker = world.workers[at]
        done = [f for f in worker.flights if f.phase == ANSWERED]
        if worker.flights[0].phase == ANSWERED or self._without == "order":
            left = tuple(f for f in worker.flights if f is not done[-1 if self._without else 0])
            end = done[-1 if self._without else 0].entry.end
            committed = max(world.committed[0], end[0]), max(world.committed[1], end[1])
            yield _with(world._replace(committed=committed), at, worker._replace(flights=left))


def _with(world: World, at: int, worker: Worker) -> World:
    workers = world.workers
    return world._replace(workers=(*workers[:at], worker, *workers[at + 1 :]))


def _fly(world: World, at: int, n: int, flight: Flight) -> World:
    worker = world.workers[at]
    flights = worker.flights
    return _with(world, at, worker._replace(flights=(*flights[:n], flight, *flights[n + 1 :])))


def check(world: World) -> None:
    """Raise AssertionError where something was promised and is not so."""
    _, state, decisions = contained(world.log)
    for request, decision in world.answers:
        assert request < state[0], f"request {request} was answered, and is on no log"
        assert decisions[request] == decision, f"request {request} has another decision on the log"
    answered = {request for request, _ in world.answers}
    assert answered >= set(range(world.committed[0])), "a request was passed over unanswered"
    assert world.committed[1] <= state[1], "a bill was passed over"


def explore(protocol: Protocol) -> tuple[int, int]:
    """Visit every world that there can be; return how many, and in how many of them everything is
    done."""
    start = World()
    seen, waiting, finished = {start}, deque([start]), 0
    while waiting:
        world = waiting.popleft()
        check(world)
        finished += world.committed == protocol.size[1:]
        for following in protocol.following(world):
            if following not in seen:
                assert len(seen) < MOST_STATES, "the model is larger than it should be"
                seen.add(following)
                waiting.append(following)
    return len(seen), finished


@pytest.mark.parametrize("size", [Size(2, 2, 1), Size(3, 1, 1)], ids=str)
def test_whatever_happens_every_answer_is_durable_and_every_event_contained_once(
    size: Size,
) -> None:
    states, finished = explore(Protocol(size))
    assert states > 10_000 and finished > 0


@pytest.mark.parametrize("rule", ["acknowledgement", "offsets", "epochs", "order", "one at a time"])
def test_without_any_of_its_rules_something_breaks(rule: str) -> None:
    with pytest.raises(AssertionError):
        explore(Protocol(Size(2, 2, 1), without=rule))
