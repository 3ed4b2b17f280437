"""The consumer's thread fetches ahead of the lanes: bounded, and nothing from before a seek."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState
from faust.types import TP

from streams.faust.fetching import AHEAD, ConsumerThread
from streams.faust.positions import pause, positions, silence
from streams.service.condition import SILENT_AFTER

ONE, OTHER = TP("requests", 0), TP("requests", 1)


class Thread(ConsumerThread):
    """A thread whose fetches the test gives; both of its event loops are the test's."""

    should_stop = False
    parent_loop = thread_loop = property(lambda self: asyncio.get_running_loop())

    def __init__(self, *fetches: Any) -> None:
        self._fetches, self.asked = deque(fetches), list[frozenset[TP]]()
        self._rests_until = {}
        self._seeking = self._seeks = self._sent = self._taken = 0
        self._wanted = self._full = frozenset()
        self._drained = frozenset({ONE})
        self.consumer = SimpleNamespace(_buffered_partitions=set())
        self._ahead = deque()
        self._rests, self._came = asyncio.Event(), asyncio.Event()

    def _ensure_consumer(self) -> Any:
        class Consumer:
            _max_poll_records = None

        return Consumer

    async def _fetch_records(self, consumer: Any, *active: Any, **options: Any) -> Any:
        self.asked += active
        if not self._fetches:
            await asyncio.Event().wait()  # nothing more comes
        found = self._fetches.popleft()
        if isinstance(found, Exception):
            raise found
        return found


async def passes() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def pumping(*fetches: Any) -> tuple[Any, asyncio.Task[None]]:
    thread = Thread(*fetches)
    return thread, asyncio.create_task(thread._pump())


async def test_nothing_is_fetched_before_it_is_asked_for_and_only_so_much_ahead() -> None:
    fetches = [{ONE: [n]} for n in range(10)]
    thread, pump = await pumping(*fetches)
    await passes()
    assert thread.asked == []
    assert await thread.getmany({ONE}, 5.0) == fetches[0]
    await passes()
    assert len(thread.asked) == 1 + AHEAD and thread.caught_up == {ONE}
    for expected in fetches[1:]:
        assert await thread.getmany({ONE}, 5.0) == expected
    pump.cancel()


async def test_an_empty_set_means_none_and_a_rest_lasts_until_the_next_call() -> None:
    thread, pump = await pumping({ONE: [1]}, {ONE: [2]})
    assert await thread.getmany(set(), 0.01) == {}
    assert thread.asked == []
    assert await thread.getmany({OTHER}, 5.0) == {ONE: [1]}
    thread.rest()
    await passes()
    assert thread.asked[0] == {OTHER}
    pump.cancel()


async def test_what_was_fetched_of_a_full_partition_is_handed_over_and_no_more_fetched() -> None:
    thread, pump = await pumping({OTHER: [1]}, {ONE: [2]})
    thread.consumer._buffered_partitions.add(OTHER)
    assert await thread.getmany({ONE}, 5.0) == {OTHER: [1]}
    assert (thread.asked[0], thread._full) == ({ONE, OTHER}, {OTHER})
    thread.consumer._buffered_partitions.clear()
    assert await thread.getmany({ONE, OTHER}, 5.0) == {ONE: [2]}
    assert thread._full == frozenset()
    pump.cancel()


async def test_full_partitions_are_paused_in_the_client_and_their_leader_owes_nothing() -> None:
    tps = [TopicPartition(*tp) for tp in (ONE, OTHER)]
    subscription = SubscriptionState()
    subscription.assign_from_user(tps)
    states = [subscription.subscription.assignment.state_value(tp) for tp in tps]
    for state in states:
        state.reset_to(7)
        state.timestamp = 0  # an answer long ago
    client: Any = SimpleNamespace(
        _subscription=subscription, _fetcher=SimpleNamespace(_records={tps[0]: object()})
    )
    pause(positions(client), {OTHER})
    assert subscription.paused_partitions() == {OTHER}
    assert silence(client) == 0.0
    pause(positions(client), {ONE, OTHER})
    assert subscription.paused_partitions() == {ONE, OTHER}
    pause(positions(client), frozenset())
    assert subscription.paused_partitions() == set()
    # Since it was resumed, not since it was paused.
    assert silence(client) < SILENT_AFTER
    states[1].timestamp = 0
    assert silence(client) > SILENT_AFTER


@pytest.mark.parametrize("under_way", [True, False])
async def test_records_from_before_a_seek_are_dropped(under_way: bool) -> None:
    thread, pump = await pumping({ONE: [1]}, {ONE: [2]})
    await thread.getmany({ONE}, 5.0)
    await passes()
    with thread._seek():
        if under_way:
            assert await thread.getmany({ONE}, 5.0) == {}
        thread._seeks += 1  # as the thread counts it, while nothing is fetched
    if not under_way:
        assert await thread.getmany({ONE}, 5.0) == {}
    assert thread.caught_up == frozenset()
    pump.cancel()


async def test_an_error_of_a_fetch_reaches_who_asks() -> None:
    thread, pump = await pumping(ConnectionError("stopped"))
    with pytest.raises(ConnectionError):
        await thread.getmany({ONE}, 5.0)
    await pump
