"""The durable table: the partitions of this worker, recovered and fenced.

Each record carries its owner's epoch, so that a recovery drops what a stale owner still managed to
write, and writes the true records again.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping

from ground.messages import Record
from streams.changelog_format import FENCE, epoch_of
from streams.state.table_partition import Partition, PartitionLost, Publish, TableError

Callback = Callable[[frozenset[int]], object]


class NotRecovered(TableError):
    """A partition was to be taken over before its log was read to the end."""

    reason = "not_recovered"


class States:
    """The durable table `router_states` of this worker: its partitions, each on its own.

    Args:
        publish: function that hands the changes of a partition over as one record batch, see
            `streams.state.table_partition`.
        log_only: first bytes of keys that are written to the log and not kept in memory.
    """

    def __init__(self, publish: Publish, log_only: bytes = b"") -> None:
        self._publish = publish
        self._log_only = log_only
        self._partitions: dict[int, Partition] = {}
        self._on_recovered: list[Callback] = []
        self._on_lost: list[Callback] = []

    @property
    def owned(self) -> frozenset[int]:
        """Return the partitions that this worker has, recovered or not."""
        return frozenset(self._partitions)

    @property
    def size(self) -> int:
        """Return the approximate bytes that all records take in memory."""
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
        """Register a function that is called with all owned partitions after every recovery,
        before any event flows; it may be a coroutine function.
        """
        self._on_recovered.append(callback)
        return callback

    def on_lost(self, callback: Callback) -> Callback:
        """Register a function that is called with partitions whose derived state must be
        forgotten: they were lost, or another owner has written to them.
        """
        self._on_lost.append(callback)
        return callback

    def recovers_from(self, number: int) -> int:
        """Return the last offset that the table contains; -1 for a partition to be read from its
        start.
        """
        found = self._partitions.get(number)
        return -1 if found is None else found.offset

    def restore(self, records: Iterable[Record]) -> None:
        """Apply recovered records; those of lost partitions are skipped."""
        for record in records:
            if (partition := self._partitions.get(record.partition)) is not None:
                partition.recover(
                    record.key or b"",
                    record.value,
                    offset=record.offset,
                    epoch=epoch_of(record.headers),
                )

    async def close(self) -> None:
        """Let no more groups be applied, and return when all record batches are on the log.

        Memory must not be ahead of the log during a recovery.
        """
        for partition in self:
            partition.open = False
            async with partition.travelling:
                pass

    async def assign(self, numbers: Iterable[int]) -> None:
        """Take over a new assignment: drop lost partitions, and start new ones empty."""
        assigned = frozenset(numbers)
        lost = self.owned - assigned
        for number in lost:
            partition = self._partitions.pop(number)
            partition.owned = False
            # A batch on its way may land on the log or not: only the next owner can tell.
            if partition.dirty or partition.travelling.locked():
                raise PartitionLost(f"partition {number} was lost in the middle of a batch")
        for number in assigned - self.owned:
            self._partitions[number] = Partition(number, self._publish, log_only=self._log_only)
        if lost:
            await _call(self._on_lost, lost)

    async def recovered(self, ends: Mapping[int, int]) -> None:
        """Fence every partition that was read anew, then announce all of them.

        Args:
            ends: the offset after the last record on the log, of each owned partition, as Kafka
                reported it when the recovery began.

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
        # All partitions are checked before one is fenced, so that nothing is written if
        # NotRecovered is raised.
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
        # Another worker has written meanwhile, so derived state of these partitions is stale.
        if rewritten:
            await _call(self._on_lost, rewritten)
        for partition in anew:
            partition.fenced = False
            partition.end = ends[partition.number]
        await asyncio.gather(*(self._fence(partition) for partition in anew))
        for partition in self:
            partition.open = True
        await _call(self._on_recovered, self.owned)

    async def _fence(self, partition: Partition) -> None:
        # The epoch is this owner's only once it is on the log: a recovery that goes on after a
        # fence that was broken off still has records of the epoch before it to read.
        epoch = partition.epoch + 1
        changes: dict[bytes, bytes | None] = {FENCE: b"%d" % epoch}
        changes |= {
            key: partition.records.get(key) for key in sorted(partition.repairs) if key != FENCE
        }
        await partition.write(changes, epoch=epoch)
        partition.epoch = epoch
        partition.fenced = True
        partition.repairs.clear()


async def _call(callbacks: Iterable[Callback], partitions: frozenset[int]) -> None:
    for callback in callbacks:
        outcome = callback(partitions)
        if inspect.isawaitable(outcome):
            await outcome
