"""Fetching: of the partitions that are asked for, and nothing from before a seek."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.subscription_state import SubscriptionState
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streams.faust import fetching as fetching_module
from streams.faust.fetching import LoopConsumer
from streams.faust.positions import fetch_only, positions, silence
from streams.faust.set_aside import SetAside
from streams.service.condition import SILENT_AFTER
from streams.settings import Settings

ONE, OTHER = TP("requests", 0), TP("requests", 1)


class Fetcher(fetcher.Fetcher):
    """The client's fetcher, which fetches nothing."""

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscriptions = subscription
        self._records: dict[TopicPartition, object] = {}
        self._wait_consume_future = asyncio.get_running_loop().create_future()


class Fetching(LoopConsumer):
    """A consumer whose fetches the test gives."""

    def __init__(self, *fetches: Any) -> None:
        self._fetches, self.asked = deque(fetches), list[frozenset[TP]]()
        self.set_aside, self._seeking = SetAside(Settings()), 0
        self._gate = asyncio.Lock()
        self.consumer = SimpleNamespace(full=set())
        self.app = SimpleNamespace(conf=SimpleNamespace(broker_max_poll_records=None))
        subscription = SubscriptionState()
        subscription.assign_from_user([TopicPartition(*tp) for tp in (ONE, OTHER)])
        self.subscription = subscription
        found = Fetcher(subscription)
        self._consumer = SimpleNamespace(
            _subscription=subscription, _fetcher=found, seek=found.seek_to
        )
        for tp, state in self.states.items():
            state.reset_to(7)
            state.lso = 7 if tp == ONE else 8

    @property
    def states(self) -> dict[Any, Any]:
        assignment = self.subscription.subscription.assignment
        return {tp: assignment.state_value(tp) for tp in assignment.tps}

    async def _fetch_records(self, consumer: Any, *active: Any, **options: Any) -> Any:
        self.asked += active
        await asyncio.sleep(0.01)
        found = self._fetches.popleft()
        if isinstance(found, Exception):
            raise found
        return found


async def test_an_empty_set_means_none() -> None:
    fetching: Any = Fetching({ONE: [1]}, {ONE: [2]})
    assert await fetching.getmany(set(), 0.01) == {}
    assert fetching.asked == []
    assert await fetching.getmany({OTHER}, 5.0) == {ONE: [1]}
    assert fetching.asked == [{OTHER}]
    assert fetching.caught_up == {ONE}


async def test_what_was_fetched_of_a_full_partition_is_handed_over_and_no_more_fetched() -> None:
    fetching: Any = Fetching({OTHER: [1]}, {ONE: [2]})
    fetching.consumer.full.add(OTHER)
    assert await fetching.getmany({ONE}, 5.0) == {OTHER: [1]}
    assert fetching.asked[0] == {ONE, OTHER}
    assert fetching.subscription.paused_partitions() == {OTHER}
    fetching.consumer.full.clear()
    assert await fetching.getmany({ONE, OTHER}, 5.0) == {ONE: [2]}
    assert fetching.subscription.paused_partitions() == set()


async def test_what_is_not_wanted_is_paused_and_its_leader_owes_nothing() -> None:
    fetching: Any = Fetching()
    client = fetching._consumer
    one, other = (fetching.states[TopicPartition(*tp)] for tp in (ONE, OTHER))
    client._fetcher._records[TopicPartition(*ONE)] = object()
    one.timestamp = other.timestamp = 0  # an answer long ago
    fetch_only(client, positions(client), {ONE}, taken={OTHER})
    assert fetching.subscription.paused_partitions() == {OTHER}
    assert silence(client) == 0.0
    fetch_only(client, positions(client), set(), taken={ONE, OTHER})
    assert fetching.subscription.paused_partitions() == {ONE, OTHER}
    fetch_only(client, positions(client), {ONE, OTHER}, taken=set())
    assert fetching.subscription.paused_partitions() == set()
    # Since it was resumed, not since it was paused.
    assert silence(client) < SILENT_AFTER
    other.timestamp = 0
    assert silence(client) > SILENT_AFTER


async def test_what_was_fetched_and_nobody_takes_is_dropped_and_the_next_fetch_may_leave() -> None:
    fetching: Any = Fetching({ONE: [1]})
    found = fetching._consumer._fetcher
    found._records = dict.fromkeys(fetching.states, object())
    assert await fetching.getmany({ONE}, 5.0) == {ONE: [1]}
    assert found._records.keys() == {ONE}
    assert found._wait_consume_future.done()
    assert fetching.states[OTHER].position == 7


async def test_records_from_before_a_seek_are_dropped() -> None:
    fetching: Any = Fetching({ONE: [1]}, {ONE: [2]})

    async def seek() -> None:
        with fetching._seek():
            async with fetching._gate:
                fetching.asked.append(frozenset())

    taken = asyncio.create_task(fetching.getmany({ONE}, 5.0))
    await asyncio.sleep(0)
    await asyncio.gather(taken, seek())
    # The seek waited for the fetch.
    assert fetching.asked == [{ONE}, frozenset()]
    assert (taken.result(), fetching.caught_up) == ({}, frozenset())
    assert await fetching.getmany({ONE}, 5.0) == {ONE: [2]}


async def test_records_from_after_a_seek_are_kept() -> None:
    fetching: Any = Fetching({ONE: [2]})
    with fetching._seek():
        async with fetching._gate:
            taken = asyncio.create_task(fetching.getmany({ONE}, 5.0))
            await asyncio.sleep(0)
    assert await taken == {ONE: [2]}


async def test_an_error_of_a_fetch_reaches_who_asks() -> None:
    with pytest.raises(ConnectionError):
        await Fetching(ConnectionError("stopped")).getmany({ONE}, 5.0)


async def test_a_commit_goes_on_without_a_topic_that_goes_while_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs, topics, asked = TP("costs", 0), {"requests", "costs"}, list[set[TP]]()

    async def commit(self: Any, offsets: dict[TP, int]) -> bool:
        asked.append({*offsets})
        if costs in offsets:  # as aiokafka does, until the topic is back
            topics.discard("costs")
            await asyncio.Event().wait()
        return True

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "commit", commit)
    monkeypatch.setattr(fetching_module, "LOOK_FOR_TOPICS_EVERY", 0.01)
    fetching: Any = Fetching()
    fetching._consumer.partitions_for_topic = lambda topic: {0} if topic in topics else None
    assert await fetching.commit({ONE: 8, costs: 3})
    assert asked == [{ONE, costs}, {ONE}]
    assert not await fetching.commit({costs: 3})
    assert len(asked) == 2
