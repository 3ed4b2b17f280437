"""A partition that is not read to its end leaves no connection behind."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from streams.settings import Settings
from studies.history import kafka_reader
from studies.history.kafka_reader import KafkaReader


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let batches come from nowhere, and note which partitions were closed."""
    closed: list[int] = []

    async def batches(
        settings: Settings, place: Any, begin: int, end: int
    ) -> AsyncIterator[list[Any]]:
        try:
            for offset in range(begin, end):
                yield [offset]
        finally:
            closed.append(place.partition)

    monkeypatch.setattr(kafka_reader, "batches", batches)
    return closed


def test_partition_read_to_its_end_is_closed(closed: list[int]) -> None:
    with KafkaReader(Settings()) as reader:
        found: list[Any] = list(reader.records("topic", 3, 5, 8))
        assert found == [5, 6, 7]
        assert closed == [3]


def test_partition_left_half_way_is_closed_with_its_reader(closed: list[int]) -> None:
    with KafkaReader(Settings()) as reader:
        left: Any = reader.records("topic", 4, 0, 10)
        assert next(left) == 0
        assert closed == []
    assert closed == [4]
    left.close()
    assert closed == [4]


def test_partition_that_is_let_go_while_another_one_is_awaited_is_closed_with_its_reader(
    closed: list[int],
) -> None:
    with KafkaReader(Settings()) as reader:
        left = reader.records("topic", 5, 0, 10)
        next(left)

        async def let_go() -> None:
            left.close()  # type: ignore[attr-defined]

        reader.run(let_go())
        assert closed == []
    assert closed == [5]


def test_a_header_without_a_value_is_read_as_an_empty_one() -> None:
    headers = [("pb.based_on", None), ("x", b"\xff1")]
    found: Any = SimpleNamespace(offset=7, timestamp=1500, key=b"a", value=None, headers=headers)
    assert kafka_reader.record_of(found).headers == {"pb.based_on": "", "x": "\ufffd1"}
