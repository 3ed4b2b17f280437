"""What each patch in streams/faust stands on, in the installed versions of Faust, Mode and
aiokafka.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
from importlib import metadata
from typing import Any

import aiokafka.consumer.consumer
import pytest
import uvloop
from aiokafka.consumer import fetcher, group_coordinator, subscription_state
from faust.tables.manager import TableManager as FaustTableManager
from faust.tables.recovery import Recovery as FaustRecovery
from faust.transport import consumer as faust_consumer
from faust.transport.drivers import aiokafka as driver
from mode.threads import MethodQueue, ServiceThread, WorkerThread

from streams.faust import versions
from streams.faust.fetching import LoopConsumer
from streams.faust.membership import FENCED_INSTANCE_ID, membership_error
from streams.faust.recovery import Recovery, TableManager
from streams.faust.state_table import StateTable
from streams.faust.transport import Consumer, Producer
from streams.faust.unreadable import PartitionRecords
from streams.service.lifetime import run


def names_set_by(function: Any) -> set[str]:
    """Return the attributes of `self` that a function assigns."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    targets = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return {
        node.attr
        for node in targets
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize("package", list(versions.VERSIONS))
def test_another_version_is_refused_at_start(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    versions.require_known_versions()
    real = metadata.version
    monkeypatch.setattr(
        versions, "version", lambda name: "9.9.9" if name == package else real(name)
    )
    with pytest.raises(
        versions.UnknownFramework,
        match=rf"^{package}: 9.9.9 is installed, .* is needed: run `uv sync`$",
    ):
        versions.require_known_versions()


@pytest.mark.parametrize(
    ("patched", "stock"),
    [
        (Recovery.on_recovery_completed, FaustRecovery.on_recovery_completed),
        (Recovery._set_recovery_started, FaustRecovery._set_recovery_started),
        (TableManager.on_start, FaustTableManager.on_start),
        (LoopConsumer.getmany, driver.AIOKafkaConsumerThread.getmany),
        (LoopConsumer.seek_to_committed, driver.AIOKafkaConsumerThread.seek_to_committed),
        (LoopConsumer.seek_wait, driver.AIOKafkaConsumerThread.seek_wait),
        (LoopConsumer._seek_wait, driver.AIOKafkaConsumerThread._seek_wait),
        (
            LoopConsumer._create_worker_consumer,
            driver.AIOKafkaConsumerThread._create_worker_consumer,
        ),
        (Consumer._drain_messages, driver.Consumer._drain_messages),
        (Consumer.stop_flow, driver.Consumer.stop_flow),
        (Consumer._filter_tps_with_pending_acks, driver.Consumer._filter_tps_with_pending_acks),
        (Consumer._filter_committable_offsets, driver.Consumer._filter_committable_offsets),
        (Consumer.on_partitions_revoked, driver.Consumer.on_partitions_revoked),
        (Consumer.wait_empty, driver.Consumer.wait_empty),
        (Consumer._new_consumer_thread, driver.Consumer._new_consumer_thread),
        (Producer._settings_extra, driver.Producer._settings_extra),
        (StateTable.persisted_offset, StateTable.__mro__[1].persisted_offset),
        (StateTable.on_rebalance, StateTable.__mro__[1].on_rebalance),
        (StateTable.on_recovery_completed, StateTable.__mro__[1].on_recovery_completed),
    ],
    ids=lambda function: function.__qualname__,
)
def test_a_method_is_replaced_by_one_of_the_same_form(patched: Any, stock: Any) -> None:
    assert [name.lstrip("_") for name in parameters(patched)] == [
        name.lstrip("_") for name in parameters(stock)
    ]
    assert inspect.iscoroutinefunction(patched) == inspect.iscoroutinefunction(stock)


def test_unreadable_batches_are_placed_in_what_the_fetcher_calls() -> None:
    stock = PartitionRecords.__mro__[1]
    assert parameters(stock.__init__)[1:5] == [
        "tp",
        "records",
        "aborted_transactions",
        "fetch_offset",
    ]
    assert {"_records_iterator", "next_fetch_offset", "_tp"} <= names_set_by(stock.__init__)
    assert "PartitionRecords(" in inspect.getsource(fetcher.Fetcher._proc_fetch_request)
    body = inspect.getsource(stock._unpack_records)
    assert "records.has_next()" in body and "records.next_batch()" in body


def test_a_rewind_stands_on_the_fetchers_positions() -> None:
    assert parameters(fetcher.Fetcher.seek_to) == ["self", "tp", "offset"]
    state = subscription_state.TopicPartitionState
    assert {"lso", "highwater", "timestamp"} <= names_set_by(state.__init__)
    assert isinstance(state.position, property) and isinstance(state.has_valid_position, property)
    assert hasattr(subscription_state.Assignment, "state_value") and hasattr(
        subscription_state.Assignment, "tps"
    )


def test_a_paused_partition_is_not_fetched_and_what_was_fetched_of_it_is_handed_over() -> None:
    state = subscription_state.TopicPartitionState
    assert isinstance(state.paused, property) and callable(state.pause) and callable(state.resume)
    assert "elif tp_state.paused:" in inspect.getsource(fetcher.Fetcher._get_actions_per_node)
    assert "paused" not in inspect.getsource(fetcher.Fetcher.fetched_records)


def test_the_event_loop_of_a_worker_is_libuvs() -> None:
    seen = list[object]()

    async def look() -> None:
        seen.append(type(asyncio.get_running_loop()))

    run(look())
    assert seen == [uvloop.Loop]


def test_a_consumer_thread_may_be_a_task_of_the_lanes_loop() -> None:
    assert parameters(WorkerThread.__init__)[:2] == ["self", "service"]
    assert "self._thread = self.Worker(self)" in inspect.getsource(ServiceThread.start)
    assert "self.service._start_thread()" in inspect.getsource(WorkerThread.run)
    assert "run_until_complete(self._serve())" in inspect.getsource(ServiceThread._start_thread)
    assert "all_tasks" in inspect.getsource(ServiceThread._gather_remaining_tasks)
    # The loop that was given is neither made nor closed.
    assert "thread_loop is None" in inspect.getsource(ServiceThread.__init__)
    assert "maybe_async(method" in inspect.getsource(MethodQueue._process_enqueued)


def test_isolation_and_fetch_wait_are_read_when_the_consumer_starts() -> None:
    consumer = aiokafka.consumer.consumer.AIOKafkaConsumer
    assert {"_isolation_level", "_fetch_max_wait_ms"} <= names_set_by(consumer.__init__)
    start = inspect.getsource(consumer.start)
    assert (
        "isolation_level=self._isolation_level" in start
        and "fetch_max_wait_ms=self._fetch_max_wait_ms" in start
    )
    # … and by every request of the fetcher, so that it can be changed.
    assert "self._fetch_max_wait_ms" in inspect.getsource(fetcher.Fetcher._get_actions_per_node)


def test_committed_offsets_can_be_asked_for_at_once() -> None:
    ask = group_coordinator.GroupCoordinator.fetch_committed_offsets
    assert (parameters(ask), inspect.iscoroutinefunction(ask)) == (["self", "partitions"], True)


def test_a_session_is_renewed_with_heartbeats_and_lost_with_the_generation() -> None:
    coordinator = group_coordinator.GroupCoordinator
    assert inspect.iscoroutinefunction(
        coordinator._do_heartbeat
    ) and not inspect.iscoroutinefunction(coordinator.reset_generation)
    assert "self._do_heartbeat()" in inspect.getsource(coordinator._heartbeat_routine)


async def test_membership_errors_are_raised_where_they_are_looked_for() -> None:
    coordinator = object.__new__(group_coordinator.GroupCoordinator)
    coordinator._coordination_task = asyncio.get_running_loop().create_future()
    coordinator._error_consumed_fut = coordinator._pending_exception = None
    assert membership_error(coordinator) is None
    coordinator._pending_exception = error = ValueError()
    assert membership_error(coordinator) is error
    coordinator._coordination_task.set_exception(KeyError())
    assert isinstance(membership_error(coordinator), KeyError)
    coordinator._coordination_task = asyncio.get_running_loop().create_future()
    coordinator._coordination_task.cancel()
    assert membership_error(coordinator) is None


def test_a_longer_session_is_asked_for_where_the_group_is_joined() -> None:
    coordinator = group_coordinator.GroupCoordinator
    assert parameters(coordinator._do_rejoin_group) == ["self", "subscription"]
    assert {"_session_timeout_ms", "_group_instance_id"} <= names_set_by(coordinator.__init__)
    assert "self._do_rejoin_group(" in inspect.getsource(group_coordinator)
    assert inspect.iscoroutinefunction(coordinator.close)


def test_a_member_that_was_dropped_is_known_by_what_is_reset_before_it_joins_again() -> None:
    coordinator = group_coordinator.GroupCoordinator
    assert {"generation", "member_id", "group_id", "_retry_backoff_ms"} <= names_set_by(
        coordinator.__init__
    )
    reset = inspect.getsource(coordinator.reset_generation)
    assert "self.member_id =" in reset and "self.generation =" in reset
    assert parameters(coordinator._send_req) == ["self", "request"]
    # With a name of aiokafka's own, the number of this program is not needed any more.
    assert aiokafka.errors.for_code(FENCED_INSTANCE_ID) is aiokafka.errors.UnknownError


def test_a_coordinator_that_keeps_its_errors_somewhere_else_ends_the_worker() -> None:
    renamed: Any = object()
    assert isinstance(membership_error(renamed), AttributeError)


def test_the_end_of_the_buffer_is_told_with_the_methods_that_faust_itself_calls() -> None:
    assert parameters(faust_consumer.Consumer.on_buffer_full) == ["self", "tp"]
    assert parameters(faust_consumer.Consumer.on_buffer_drop) == ["self", "tp"]


def test_record_batches_are_built_and_sent_as_they_are() -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.producer.message_accumulator import BatchBuilder

    assert parameters(AIOKafkaProducer.send_batch) == ["self", "batch", "topic", "partition"]
    assert {"append", "close", "size"} <= set(dir(BatchBuilder))
    assert parameters(BatchBuilder.__init__)[:3] == ["self", "batch_size", "compression_type"]
