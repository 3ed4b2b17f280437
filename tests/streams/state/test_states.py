"""The durable table over a log in memory: one batch a commit, one owner a partition."""

import asyncio
from collections import defaultdict

import pytest

from streams.changelog_format import FENCE, Changes
from streams.state.table_partition import (
    RECORD_BYTES,
    ForeignWrite,
    NotWriting,
    Partition,
    PartitionLost,
)
from streams.state.tables import NotRecovered, States


class Log:
    """Partitions of records, each batch appended as a whole."""

    def __init__(self) -> None:
        self.records: dict[int, list[tuple[bytes, bytes | None, int]]] = defaultdict(list)
        self.batches = 0

    async def publish(self, partition: int, changes: Changes, epoch: int) -> int:
        first = len(self.records[partition])
        self.records[partition] += [(key, value, epoch) for key, value in changes.items()]
        self.batches += 1
        return first

    async def recover(self, *numbers: int) -> States:
        """Return a new owner's table, recovered."""
        states = States(self.publish)
        await states.assign(numbers)
        await self.read_into(states)
        return states

    async def read_into(self, states: States) -> None:
        """Recover what is new for an owner."""
        for number in states.owned:
            for offset, (key, value, epoch) in enumerate(self.records[number]):
                states.partition(number).recover(key, value, offset=offset, epoch=epoch)
        await states.recovered({number: len(self.records[number]) for number in states.owned})


async def write(states: States, number: int, **values: bytes | None) -> None:
    partition = states.partition(number)
    with partition.writing():
        for name, value in values.items():
            partition.delete(name.encode()) if value is None else partition.put(
                name.encode(), value
            )
    await partition.write(partition.take())


async def test_a_batch_holds_what_a_group_has_changed_of_its_partition() -> None:
    log = Log()
    states = await log.recover(0, 1, 2)
    fences = log.batches
    await write(states, 0, a=b"1", b=b"2")
    await write(states, 2, a=b"3")
    assert log.batches == fences + 2
    assert [log.records[number][1:] for number in range(3)] == [
        [(b"a", b"1", 1), (b"b", b"2", 1)],
        [],
        [(b"a", b"3", 1)],
    ]


async def test_a_successor_finds_what_was_committed() -> None:
    log = Log()
    await write(await log.recover(0), 0, a=b"1", b=b"2", c=b"3")
    await write(await log.recover(0), 0, a=None, b=b"4")
    partition = (await log.recover(0)).partition(0)
    assert (partition.get(b"a"), partition.get(b"b")) == (None, b"4")
    assert partition.records == {b"b": b"4", b"c": b"3"}


async def test_deleting_what_is_not_there_changes_nothing() -> None:
    partition = (await Log().recover(0)).partition(0)
    with partition.writing():
        partition.delete(b"a")
    assert partition.take() == {}


async def test_changes_need_the_only_writer() -> None:
    partition = (await Log().recover(0)).partition(0)
    with partition.writing():
        pass
    with pytest.raises(NotWriting):
        partition.put(b"a", b"1")


async def test_only_the_group_that_is_applied_is_rolled_back() -> None:
    partition = (await Log().recover(0)).partition(0)
    with partition.writing():
        partition.put(b"a", b"1")
        partition.put(b"b", b"1")
    before = partition.take()
    with partition.writing():
        partition.put(b"a", b"2")
        partition.put(b"a", b"3")
        partition.delete(b"b")
        partition.put(b"c", b"2")
        partition.roll_back()
    assert partition.records == {b"a": b"1", b"b": b"1"} == before
    assert (partition.take(), partition.size) == ({}, 2 * (2 + RECORD_BYTES))


class Slow(Log):
    """A log that writes a batch when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def publish(self, partition: int, changes: Changes, epoch: int) -> int:
        await self.may_write.wait()
        return await super().publish(partition, changes, epoch)


async def test_one_batch_travels_at_a_time_and_a_partition_is_closed_when_it_has_landed() -> None:
    log = Slow()
    states = await log.recover(0)
    log.may_write.clear()
    writing = [asyncio.create_task(write(states, 0, a=b"%d" % n)) for n in range(2)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(states.close())
    await asyncio.sleep(0)
    assert not closing.done()
    log.may_write.set()
    await asyncio.gather(*writing, closing)
    assert [value for _, value, _ in log.records[0][1:]] == [b"0", b"1"]


@pytest.mark.parametrize("key", [b"", FENCE, FENCE + b"x"])
async def test_the_fences_keys_are_reserved(key: bytes) -> None:
    partition = (await Log().recover(0)).partition(0)
    with partition.writing(), pytest.raises(ValueError, match="zero byte"):
        partition.put(key, b"1")


async def test_a_stale_owner_learns_it_at_its_next_commit() -> None:
    log = Log()
    stale = await log.recover(0)
    await log.recover(0)
    with pytest.raises(ForeignWrite):
        await write(stale, 0, a=b"stale")


async def test_what_a_stale_owner_wrote_is_left_out_and_written_again() -> None:
    log = Log()
    stale = await log.recover(0)
    await write(stale, 0, a=b"1", gone=b"1")
    owner = await log.recover(0)
    await write(owner, 0, a=b"2", gone=None)
    with pytest.raises(ForeignWrite):
        await write(stale, 0, a=b"stale", gone=b"stale", new=b"stale")
    with pytest.raises(ForeignWrite):
        await write(owner, 0, b=b"3")
    assert (await log.recover(0)).partition(0).records == {b"a": b"2", b"b": b"3"}
    compacted = {key: value for key, value, _ in log.records[0]}
    assert (compacted[b"a"], compacted[b"gone"], compacted[b"new"]) == (b"2", None, None)


async def test_what_is_on_the_log_only_is_neither_kept_nor_repaired() -> None:
    log = Log()
    stale = await log.recover(0)
    await log.recover(0)
    with pytest.raises(ForeignWrite):
        await write(stale, 0, a=b"stale")
    states = States(log.publish, log_only=b"a")
    await states.assign([0])
    await log.read_into(states)
    assert [key for key, _, _ in log.records[0]].count(b"a") == 1
    await write(states, 0, a=b"1")
    assert states.partition(0).get(b"a") is None
    assert log.records[0][-1][:2] == (b"a", b"1")


async def test_a_kept_partition_is_announced_without_a_new_fence_or_reading() -> None:
    log = Log()
    states = await log.recover(0, 1)
    await write(states, 0, a=b"1")
    lost: list[frozenset[int]] = []
    recovered: list[frozenset[int]] = []
    states.on_lost(lost.append)
    states.on_recovered(recovered.append)
    batches = log.batches
    await states.assign([0])
    assert states.recovers_from(0) == len(log.records[0]) - 1
    await log.read_into(states)
    assert (lost, recovered, log.batches) == ([frozenset({1})], [frozenset({0})], batches)


async def test_a_partition_that_came_back_is_read_from_its_start() -> None:
    log = Log()
    states = await log.recover(0)
    await write(states, 0, a=b"1")
    before = states.partition(0)
    await states.assign([])
    with pytest.raises(PartitionLost):
        states.partition(0)
    await states.assign([0])
    assert states.recovers_from(0) == -1
    assert states.partition(0).records == {}
    with pytest.raises(PartitionLost):
        before.put(b"a", b"2")


async def test_a_partition_that_another_had_meanwhile_is_forgotten_before_it_is_announced() -> None:
    log = Log()
    states = await log.recover(0)
    await write(await log.recover(0), 0, a=b"theirs")
    calls: list[tuple[str, frozenset[int]]] = []
    states.on_lost(lambda numbers: calls.append(("lost", numbers)))
    states.on_recovered(lambda numbers: calls.append(("recovered", numbers)))
    await log.read_into(states)
    assert calls == [("lost", frozenset({0})), ("recovered", frozenset({0}))]
    assert states.partition(0).get(b"a") == b"theirs"
    await write(states, 0, a=b"ours")


async def test_losing_a_partition_in_the_middle_of_a_batch_is_an_error() -> None:
    states = await Log().recover(0)
    with states.partition(0).writing():
        states.partition(0).put(b"a", b"1")
        with pytest.raises(PartitionLost):
            await states.assign([])


async def test_losing_a_partition_whose_batch_travels_is_an_error_for_both() -> None:
    log = Slow()
    states = await log.recover(0)
    log.may_write.clear()
    writing = asyncio.create_task(write(states, 0, a=b"1"))
    await asyncio.sleep(0)
    with pytest.raises(PartitionLost, match="in the middle"):
        await states.assign([])
    log.may_write.set()
    with pytest.raises(PartitionLost, match="during a commit"):
        await writing


def test_a_record_read_twice_counts_once() -> None:
    partition = Partition(0)
    partition.recover(b"a", b"1", offset=5, epoch=1)
    partition.recover(b"a", b"0", offset=4, epoch=1)
    assert partition.get(b"a") == b"1"


async def test_equal_large_values_are_kept_once_also_after_a_recovery() -> None:
    log, large = Log(), b"x" * 3_000
    states = await log.recover(0, 1)
    for number, name in ((0, "a"), (0, "b"), (1, "a")):
        await write(states, number, **{name: bytes(bytearray(large))})
    for owner in (states, await log.recover(0, 1)):
        kept = [value for partition in owner for value in partition.records.values()]
        assert len(kept) == 3
        assert len({id(value) for value in kept}) == 1


async def test_a_partition_that_was_not_read_to_its_end_is_not_taken_over() -> None:
    log = Log()
    await write(await log.recover(0), 0, a=b"1", b=b"2")
    before = list(log.records[0])
    heir = States(log.publish)
    await heir.assign([0])
    heir.partition(0).recover(*before[0][:2], offset=0, epoch=before[0][2])
    # Its true end, and what is left of it when a rebalance comes in between.
    for end in (len(before), 0):
        with pytest.raises(NotRecovered):
            await heir.recovered({0: end})
    assert log.records[0] == before


async def test_a_batch_that_lands_while_a_recovery_begins_leaves_its_partition_as_it_is() -> None:
    log = Log()
    owner = await log.recover(0)
    end, batches = len(log.records[0]), log.batches
    await write(owner, 0, a=b"1", b=b"2")
    await owner.assign([0])
    await owner.recovered({0: end})
    assert log.batches == batches + 1
    await write(owner, 0, c=b"3")
    assert (await log.recover(0)).partition(0).records == {b"a": b"1", b"b": b"2", b"c": b"3"}


async def test_a_fence_that_was_broken_off_voids_nothing_that_is_still_to_be_read() -> None:
    log = Log()
    await write(await log.recover(0), 0, a=b"1")

    async def broken_off(partition: int, changes: Changes, epoch: int) -> int:
        raise ConnectionError("rebalancing again")

    heir = States(broken_off)
    await heir.assign([0])
    with pytest.raises(ConnectionError):
        await log.read_into(heir)
    await heir.close()
    # The owner before it was still at work.
    log.records[0].append((b"b", b"2", log.records[0][-1][2]))
    heir.partition(0).publish = log.publish
    await log.read_into(heir)
    assert heir.partition(0).records == {b"a": b"1", b"b": b"2"}
    assert (await log.recover(0)).partition(0).records == {b"a": b"1", b"b": b"2"}
