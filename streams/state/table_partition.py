"""One partition of the durable table: its records, the changes of the present group, and the record
batches on their way to the log.

The log decides who owns a partition. An owner knows the offset at which its next record batch must
land. Another offset means that someone else wrote, and that this process must not act on its state
any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from ground.boundary import BoundaryError
from streams.changelog_format import FENCE, Changes

RECORD_BYTES = 200
"""Bytes that a record takes in memory beside its key and value: two objects, its place in the
table, and its share of an index."""

EQUAL_FROM, EQUAL_TO = 2_000, 20_000
"""Least and largest size in bytes of values that are stored once if they are equal: arms of 26
dimensions have 3,000 bytes, arms of 64 dimensions 17,000.
"""

Publish = Callable[[int, Changes, int], Awaitable[int]]
"""Function that writes the changes of a partition as one record batch under an epoch, and returns
the offset of its first record.
"""


class TableError(BoundaryError):
    """Base of the table's errors; all of them end the process, a restart recovers from the log."""

    reason = "table"
    retriable = False


class PartitionLost(TableError):
    """The partition is not owned by this worker, or no longer."""

    reason = "partition_lost"


class NotWriting(TableError):
    """A change outside of `writing()`."""

    reason = "not_writing"


class ForeignWrite(TableError):
    """Another worker has written to a partition that this one thought its own."""

    reason = "foreign_write"


@dataclass(slots=True, eq=False)
class Partition:
    """The records of one partition, including those of all record batches on their way to the
    log, and the changes of the present group.
    """

    number: int
    publish: Publish | None = None
    records: dict[bytes, bytes] = field(default_factory=dict)
    dirty: dict[bytes, bytes | None] = field(default_factory=dict)
    offset: int = -1
    """Offset of the last record seen."""
    end: int = -1
    """Offset where the next record batch must land."""
    epoch: int = 0
    fenced: bool = False
    owned: bool = True
    open: bool = False
    """True while groups may be applied. From the start of a rebalance until this partition is
    recovered it is not."""
    writable: bool = False
    travelling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a record batch is on its way to the log: one at a time."""
    repairs: set[bytes] = field(default_factory=set)
    """Keys whose last record on the log is a stale owner's."""
    size: int = 0
    """Approximate bytes that the records take in memory."""
    log_only: bytes = b""
    """First bytes of keys that are on the log only: another store holds them."""
    _before: dict[bytes, bytes | None] = field(default_factory=dict)
    """Values before the present group of records that it has changed; None: the record did not
    exist.
    """

    def get(self, key: bytes) -> bytes | None:
        """Return a record's value, or None."""
        return self.records.get(key)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A context in which records may be changed; nothing may be awaited inside."""
        self.writable = True
        try:
            yield
        finally:
            self.writable = False

    def put(self, key: bytes, value: bytes) -> None:
        """Set a record, durable with the next record batch."""
        kind = self._kind(key)
        self.dirty[key] = value
        if kind not in self.log_only:
            before = self.records.get(key)
            # The first change of a key in a group stores the value before; later changes must not
            # replace that.
            self._before.setdefault(key, before)
            self._keep(key, value, before)

    def delete(self, key: bytes) -> None:
        """Remove a record, as a tombstone with the next record batch; a key that is not there
        changes nothing.
        """
        kind = self._kind(key)
        before = self.records.get(key)
        # A key that no record has needs no tombstone; of one that is on the log only, memory can't
        # tell.
        if self._drop(key) or kind in self.log_only:
            self._before.setdefault(key, before)
            self.dirty[key] = None

    def set_all(self, values: Changes) -> None:
        """Set records in this order, and remove those without a value."""
        for key, value in values.items():
            if value is None:
                self.delete(key)
            else:
                self.put(key, value)

    def take(self) -> Changes:
        """Return the group's changes to be written; they can no longer be rolled back."""
        changes, self.dirty, self._before = self.dirty, {}, {}
        return changes

    def roll_back(self) -> None:
        """Restore the records as they were before the group."""
        for key, value in self._before.items():
            if value is None:
                self._drop(key)
            else:
                self._keep(key, value, self.records.get(key))
        self.take()

    async def write(self, changes: Changes, *, epoch: int | None = None) -> None:
        """Write changes as one record batch, and return when it is on the log at the expected
        offset.

        Only one record batch is written at a time: one behind another that never landed would
        leave a hole that no recovery sees.

        Raises:
            ForeignWrite: the record batch landed at another offset than this owner's next one, so
                the batch is void.
            PartitionLost: the partition was lost meanwhile.
        """
        if self.publish is None:
            raise NotWriting("this partition is only read")
        async with self.travelling:
            first = await self.publish(self.number, changes, self.epoch if epoch is None else epoch)
            # The offset is the fence: had another owner written, this batch would have landed
            # behind its. Its records are on the log all the same; the epoch tells the next recovery
            # to drop them.
            if first != self.end:
                raise ForeignWrite(
                    f"partition {self.number}: batch landed at {first}, not at {self.end}"
                )
            if not self.owned:
                raise PartitionLost(f"partition {self.number} was lost during a commit")
            # A change is a record is an offset: the batch is not transactional, so no marker
            # follows it. What was just written counts as recovered.
            self.end += len(changes)
            self.offset = self.end - 1

    def recover(self, key: bytes, value: bytes | None, *, offset: int, epoch: int) -> None:
        """Apply one record of the log; a record of a stale owner is left out and noted for
        repair.
        """
        # A recovery that was broken off reads some records twice.
        if offset <= self.offset:
            return
        self.offset = offset
        # A record that is only on the log can't be written again from memory either.
        if key[:1] in self.log_only:
            return
        # A stale owner wrote this record after the fence. It is dropped here, and the true record
        # is written again, so that compaction keeps the true one.
        if epoch < self.epoch:
            self.repairs.add(key)
            return
        # A record of the owner, or of a newer one, replaces what a stale owner wrote before.
        self.epoch = epoch
        self.repairs.discard(key)
        if key == FENCE:
            return
        if value is None:
            self._drop(key)
        else:
            self._keep(key, value, self.records.get(key))

    def _keep(self, key: bytes, value: bytes, before: bytes | None) -> None:
        """Set a record in memory; `before` is its earlier value."""
        if before is not None:
            self.size += len(value) - len(before)
        else:
            # A record that replaces another one has learned something, so it is hardly equal to
            # any other.
            if EQUAL_FROM <= len(value) <= EQUAL_TO:
                value = _kept_once(value)
            self.size += len(value) + len(key) + RECORD_BYTES
        self.records[key] = value

    def _drop(self, key: bytes) -> bool:
        before = self.records.pop(key, None)
        if before is not None:
            self.size -= len(key) + len(before) + RECORD_BYTES
        return before is not None

    def _kind(self, key: bytes) -> bytes:
        """Return the first byte of a key. Raises NotWriting or PartitionLost if its record may not
        be changed.
        """
        if not self.owned:
            raise PartitionLost(f"partition {self.number} was lost")
        if not self.writable:
            raise NotWriting("changes need `with partition.writing()`")
        kind = key[:1]
        if kind == FENCE or not kind:
            raise ValueError("keys must not be empty or start with a zero byte")
        return kind


@lru_cache(maxsize=512)
def _kept_once(value: bytes) -> bytes:
    """Return one shared object for equal values. Arms that have learned nothing are equal for all
    routers, so sharing them saves most of the memory of new routers.
    """
    return value
