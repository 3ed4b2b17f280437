"""What is said goes out as one batch a partition, in order, and nothing is taken for delivered that
is not.
"""

import asyncio
from typing import Any

import pytest
from aiokafka.producer import sender as aiokafka_sender
from aiokafka.producer.message_accumulator import BatchBuilder, MessageAccumulator
from aiokafka.producer.sender import SendProduceReqHandler
from aiokafka.protocol.produce import ProduceResponse_v8
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from streams.faust import outgoing
from streams.faust.outgoing import Outgoing


class Producer:
    """A producer that keeps what it is given, one batch at a time where it is slow."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, int, list[bytes]]] = []
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.error: Exception | None = None

    async def partitions_for(self, topic: str) -> set[int]:
        return {0, 1}

    async def send_batch(self, builder: Any, topic: str, *, partition: int) -> Any:
        await self.may_go.wait()
        records = MemoryRecords(bytes(builder._build())).next_batch()
        assert records is not None
        self.batches.append((topic, partition, [record.value for record in records]))
        future = asyncio.get_running_loop().create_future()
        if self.error is None:
            future.set_result(None)
        else:
            future.set_exception(self.error)
        return future


async def may_write() -> None:
    return None


@pytest.fixture
async def producer() -> Producer:
    return Producer()


def sender(producer: Producer, codec: str = "none", **limit: int) -> Outgoing:
    return Outgoing(lambda: producer, may_write=may_write, codec=codec, **limit)


@pytest.mark.parametrize("codec", list(outgoing.CODECS))
async def test_records_of_a_partition_go_out_together_in_order(
    producer: Producer, codec: str
) -> None:
    outgoing = sender(producer, codec)
    sent = [await outgoing.send("routes", b"%d" % i, b"%c" % (i % 2)) for i in range(6)]
    await asyncio.gather(*sent)
    assert sorted(producer.batches) == [
        ("routes", 0, [b"0", b"2", b"4"]),
        ("routes", 1, [b"1", b"3", b"5"]),
    ]


async def test_what_comes_while_a_batch_is_on_its_way_goes_out_after_it(producer: Producer) -> None:
    outgoing = sender(producer)
    producer.may_go.clear()
    first = await outgoing.send("routes", b"first", b"k", 0)
    await asyncio.sleep(0)
    later = [await outgoing.send("routes", b"later %d" % i, b"k", 0) for i in range(3)]
    producer.may_go.set()
    await asyncio.gather(first, *later)
    assert [values for _, _, values in producer.batches] == [
        [b"first"],
        [b"later 0", b"later 1", b"later 2"],
    ]


async def test_a_full_batch_is_followed_by_another(producer: Producer) -> None:
    said = sender(producer, batch_bytes=4_000)
    await asyncio.gather(
        *[await said.send("routes", b"%4d" % i + b"x" * 996, b"k", 0) for i in range(10)]
    )
    assert len(producer.batches) > 1
    assert [int(value[:4]) for _, _, values in producer.batches for value in values] == list(
        range(10)
    )


async def test_a_batch_that_is_refused_fails_for_each_of_its_senders(producer: Producer) -> None:
    outgoing = sender(producer)
    producer.error = ValueError("too large")
    sent = [
        await outgoing.send("routes", b"1", b"k", 0),
        await outgoing.send("routes", b"2", b"k", 0),
    ]
    for delivery in sent:
        with pytest.raises(ValueError, match="too large"):
            await delivery


class Broker:
    """The leader of every partition, as aiokafka's sender sees it: it answers when it is told to.

    Attributes:
        requests: the topics of each produce request.
    """

    def __init__(self) -> None:
        self.requests: list[set[str]] = []
        self.answers = asyncio.Semaphore(0)

    def leader_for_partition(self, tp: TopicPartition) -> int:
        return 0

    async def send(self, node_id: int, request: Any) -> Any:
        self.requests.append({topic for topic, _ in request._topics})
        await self.answers.acquire()
        taken = [
            (topic, [(number, 0, 0, -1, 0, [], None) for number, _ in partitions])
            for topic, partitions in request._topics
        ]
        return ProduceResponse_v8(taken, 0)


async def passes() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_waits_for_a_request_goes_with_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aiokafka_sender, "SendProduceReqHandler", SendProduceReqHandler)
    outgoing.answers_join_the_next_request()
    broker = Broker()
    accumulator = MessageAccumulator(broker, 1000, 0, 10.0)
    sending = aiokafka_sender.Sender(
        broker,
        acks=-1,
        txn_manager=None,
        message_accumulator=accumulator,
        retry_backoff_ms=1,
        request_timeout_ms=10_000,
    )
    await sending.start()

    async def deliver(topic: str) -> None:
        builder = BatchBuilder(1000, 0)
        builder.append(timestamp=None, key=None, value=b"1")
        await (await accumulator.add_batch(builder, TopicPartition(topic, 0), 10.0))

    async def group(changelog: str, answers: str) -> None:
        await deliver(changelog)
        await asyncio.create_task(deliver(answers))

    first = asyncio.create_task(group("changelog", "answers"))
    await passes()
    second = asyncio.create_task(group("other-changelog", "other-answers"))
    for _ in range(4):  # as many as there are batches, if each went alone
        await passes()
        broker.answers.release()
    await asyncio.gather(first, second)
    await sending.close()
    assert broker.requests == [
        {"changelog"},
        {"other-changelog", "answers"},
        {"other-answers"},
    ]
