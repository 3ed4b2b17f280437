"""Hold everything durable: records per partition, changed one batch at a time, each batch one
record batch on the log.

The log decides who owns a partition. An owner knows the offset at which its next batch must land;
another offset means that someone else wrote, and that this process must not act on its state any
more. Each record carries its owner's epoch, so that a recovery drops what a stale owner still
managed to write, and writes the true records again.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agents.refusals import InternalError
from streams.state.partition import FENCE, Changes, NotWriting, Partition, PartitionLost, TableError

Publish = Callable[[int, Changes, int], Awaitable[int]]
Callback = Callable[[frozenset[int]], object]


class ForeignWrite(TableError):
    """Another worker has written to a partition that this one thought its own."""

    reason = "foreign_write"


class NotRecovered(TableError):
    """A partition was to be taken over before its log was read to the end."""

    reason = "not_recovered"


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of one commit."""

    partitions: int
    records: int
    size: int


class States:
    """The durable table `router_states` of this worker: its partitions, one writer at a time.

    Args:
        publish: write changes of a partition under an epoch as one record batch; returns its first
            record's offset.
        log_only: first bytes of keys that are written to the log and not kept in memory.
    """

    def __init__(self, publish: Publish, log_only: bytes = b"") -> None:
        self._publish = publish
        self._log_only = log_only
        self._partitions: dict[int, Partition] = {}
        self._writing = asyncio.Lock()
        self._broken: BaseException | None = None
        self._on_recovered: list[Callback] = []
        self._on_lost: list[Callback] = []

    @property
    def owned(self) -> frozenset[int]:
        """Return the partitions that this worker has, recovered or not."""
        return frozenset(self._partitions)

    @property
    def size(self) -> int:
        """Return how many bytes all records take in memory, about."""
        return sum(partition.size for partition in self._partitions.values())

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def partition(self, number: int) -> Partition:
        """Return a partition, or raise PartitionLost."""
        try:
            return self._partitions[number]
        except KeyError:
            raise PartitionLost(f"partition {number} is not owned by this worker") from None

    def on_recovered(self, callback: Callback) -> Callback:
        """Call with all owned partitions after every recovery, before any event flows; may be a
        coroutine function.
        """
        self._on_recovered.append(callback)
        return callback

    def on_lost(self, callback: Callback) -> Callback:
        """Call with partitions of which everything derived must be forgotten: lost, or written by
        another owner.
        """
        self._on_lost.append(callback)
        return callback

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["States"]:
        """Be the only writer; every change must be committed before the end, any error makes the
        table unusable.
        """
        async with self._writing:
            # After a failure between change and log, memory and log differ; only a recovery knows
            # which of the two holds.
            if self._broken is not None:
                raise NotWriting(
                    "an earlier batch failed between its changes and the log"
                ) from self._broken
            self._open(True)
            try:
                yield self
                if any(partition.dirty for partition in self):
                    raise NotWriting("changes were left without a commit")
            except BaseException as error:
                # What was rolled back left nothing behind; whoever may try again.
                if not isinstance(error, InternalError) or any(
                    partition.dirty for partition in self
                ):
                    self._broken = error
                raise
            finally:
                self._open(False)

    def roll_back(self) -> None:
        """Have everything again as it was before the batch being written."""
        for partition in self:
            partition.roll_back()

    async def commit(self) -> Committed:
        """Write each changed partition as one record batch, and return when all are on the log.

        Raises:
            ForeignWrite: a batch did not land where this owner's next one belongs.
            PartitionLost: a changed partition was lost meanwhile.
        """
        changed = [partition for partition in self if partition.dirty]
        size = sum(
            len(key) + len(value or b"")
            for partition in changed
            for key, value in partition.dirty.items()
        )
        # Each partition is a record batch of its own: Kafka writes it as a whole or not at all,
        # and no partition waits for another.
        await asyncio.gather(
            *(self._write(partition, partition.dirty, partition.epoch) for partition in changed)
        )
        records = sum(len(partition.dirty) for partition in changed)
        for partition in changed:
            partition.settle()
        return Committed(len(changed), records, size)

    def recovers_from(self, number: int) -> int:
        """Return the last offset already contained, -1 for a partition to be read from its
        start.
        """
        found = self._partitions.get(number)
        return -1 if found is None else found.offset

    async def assign(self, numbers: Iterable[int]) -> None:
        """Take over a new assignment: drop what is not in it, begin empty with what is new."""
        assigned = frozenset(numbers)
        lost = self.owned - assigned
        for number in lost:
            partition = self._partitions.pop(number)
            partition.owned = False
            # Its changes may be on the log already, or never: the next owner alone can tell.
            if partition.dirty:
                self._broken = PartitionLost(
                    f"partition {number} was lost in the middle of a batch"
                )
                raise self._broken
        for number in assigned - self.owned:
            self._partitions[number] = Partition(number, log_only=self._log_only)
        if lost:
            await _call(self._on_lost, lost)

    async def recovered(self, ends: Mapping[int, int]) -> None:
        """Fence every partition that was read anew, then announce all of them.

        Args:
            ends: the offset after the last record on the log, of each owned partition, as Kafka
                said it when the recovery began.

        Raises:
            NotRecovered: a partition was not read to its end; nothing was written.
        """
        # A batch that was under way when the recovery began landed behind the end that Kafka said.
        # It landed where it had to, so nobody else has written to a partition that stayed here.
        ends = {
            partition.number: max(ends[partition.number], partition.end)
            if partition.fenced
            else ends[partition.number]
            for partition in self
        }
        # All are looked at before one is fenced, so that NotRecovered has written nothing.
        for partition in self:
            if partition.offset + 1 != ends[partition.number]:
                raise NotRecovered(
                    f"partition {partition.number}: read to {partition.offset}, "
                    f"{ends[partition.number]} is its end"
                )
        # A partition that nobody else has written to keeps its epoch and all that was derived of
        # it: a rebalance that leaves it here unpacks no router again.
        anew = [
            partition
            for partition in self
            if not (partition.fenced and partition.end == ends[partition.number])
        ]
        rewritten = frozenset(partition.number for partition in anew if partition.fenced)
        # Somebody else has written meanwhile: what was derived of these partitions is stale.
        if rewritten:
            await _call(self._on_lost, rewritten)
        for partition in anew:
            partition.fenced = False
            partition.end = ends[partition.number]
        await asyncio.gather(*(self._fence(partition) for partition in anew))
        await _call(self._on_recovered, self.owned)

    async def _fence(self, partition: Partition) -> None:
        # The epoch is this owner's only once it is on the log: a recovery that goes on after a
        # fence that was broken off still has records of the epoch before it to read.
        epoch = partition.epoch + 1
        changes: dict[bytes, bytes | None] = {FENCE: b"%d" % epoch}
        changes |= {
            key: partition.records.get(key) for key in sorted(partition.repairs) if key != FENCE
        }
        await self._write(partition, changes, epoch)
        partition.epoch = epoch
        partition.fenced = True
        partition.repairs.clear()

    async def _write(self, partition: Partition, changes: Changes, epoch: int) -> None:
        first = await self._publish(partition.number, changes, epoch)
        # The offset is the fence: had another owner written, this batch would have landed behind
        # its. Its records are on the log all the same; the epoch tells the next recovery to drop
        # them.
        if first != partition.end:
            raise ForeignWrite(
                f"partition {partition.number}: batch landed at {first}, not at {partition.end}"
            )
        if not partition.owned:
            raise PartitionLost(f"partition {partition.number} was lost during a commit")
        # A change is a record is an offset: the batch is not transactional, so no marker follows
        # it. What was just written counts as recovered.
        partition.end += len(changes)
        partition.offset = partition.end - 1

    def _open(self, writable: bool) -> None:
        for partition in self:
            partition.writable = writable


async def _call(callbacks: Iterable[Callback], partitions: frozenset[int]) -> None:
    for callback in callbacks:
        outcome = callback(partitions)
        if inspect.isawaitable(outcome):
            await outcome
