"""Locate a record batch that can't be read, and hand over the records before it."""

from __future__ import annotations

from typing import Any

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords


class UnreadableBatch(Exception):
    """A record batch on the log is damaged, or of a codec that is not installed.

    Attributes:
        tp: topic and partition of the batch.
        begin, end: the batch's first offset, and the offset after its last one.
    """

    reason = "unreadable_batch"
    retriable = False

    def __init__(self, tp: TopicPartition, begin: int, end: int, why: BaseException) -> None:
        self.tp, self.begin, self.end = tp, begin, end
        super().__init__(
            f"topic {tp.topic}, partition {tp.partition}: the batch with the offsets {begin} to "
            f"{end - 1} can't be read "
            f"({type(why).__name__}: {why})"
        )


class _Batches:
    """The batches of one fetch; the last one that was taken is remembered."""

    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self.last: DefaultRecordBatch | None = None

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> DefaultRecordBatch:
        self.last = self._records.next_batch()
        return self.last


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of one fetch. aiokafka loses the records before a batch that can't be read; here
    they come first.
    """

    def __init__(
        self,
        tp: TopicPartition,
        records: MemoryRecords,
        aborted: object,
        fetch_offset: int,
        *options: object,
    ) -> None:
        self._batches, self._began = _Batches(records), fetch_offset
        self._records_iterator: Any
        super().__init__(tp, self._batches, aborted, fetch_offset, *options)

    def __next__(self) -> ConsumerRecord:
        try:
            return next(self._records_iterator)
        except StopIteration:
            self._records_iterator = None
            raise
        except Exception as error:
            self._records_iterator = None
            # The records before the batch are handed over first; the next call meets the batch
            # again, and raises.
            if self.next_fetch_offset > self._began:
                raise StopIteration from None
            batch, at = self._batches.last, self.next_fetch_offset
            begin, end = (at, at + 1) if batch is None else (batch.base_offset, batch.next_offset)
            raise UnreadableBatch(self._tp, begin, end, error) from error


def place_what_is_unreadable() -> None:
    """Let every consumer of this process raise UnreadableBatch in place of aiokafka's errors of
    codecs.
    """
    fetcher.PartitionRecords = PartitionRecords
