"""Switch remedies of the worker off, and make things slow or wrong, so that each remedy can be seen
to matter.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from faust.tables.recovery import Recovery as StockRecovery
from faust.transport.drivers import aiokafka as driver

from streams.faust.fetching import LoopConsumer
from streams.faust.transport import Consumer, Transport
from streams.service.worker_app import App
from streams.settings import Settings

SOME = 4
"""Source partitions whose records must have come again before a held fetch may take them."""


class StockFetching(LoopConsumer):
    """Faust's own fetching, which takes an emptied set of partitions for all of them, and crosses
    seeks.
    """

    async def getmany(self, active_partitions: Any, timeout: float) -> Any:  # noqa: ASYNC109
        return await driver.AIOKafkaConsumerThread.getmany(self, active_partitions, timeout)

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> Any:
        return await driver.AIOKafkaConsumerThread._fetch_records(self, *args, **kwargs)


class StockConsumer(Consumer):
    def _new_consumer_thread(self) -> Any:
        return StockFetching(self, loop=self.loop, thread_loop=self.loop, beacon=self.beacon)


class StockTransport(Transport):
    Consumer = StockConsumer


class Unguarded:
    async def check(self, tp: Any, records: Any) -> None:
        """Check nothing."""


async def _watch_nothing() -> None:
    """Let errors that aiokafka only stores go unseen."""


def arm(settings: Settings, *, without: list[str], faults: dict[str, float]) -> App:
    """Build the app without some of its remedies and with faults in what it stands on."""

    class Armed(App):
        def __init__(self, settings: Settings) -> None:
            super().__init__(settings)
            if "gate" in without:
                self.transport = StockTransport(self.conf.broker_consumer, self)

    app = Armed(settings)
    if "watch" in without:
        app._condition.watch = _watch_nothing  # type: ignore[method-assign]
    if "guard" in without:
        app.guard = Unguarded()  # type: ignore[assignment]
    if "session_timeout" in faults:
        app.conf.broker_session_timeout = faults["session_timeout"]
        app.conf.broker_heartbeat_interval = faults["session_timeout"] / 5
    if faults.get("crossing_fetch"):
        # The recovery learns late that all is read: meanwhile the next fetch is under way.
        _lag(StockRecovery, "_wait", 0.3)
        _let_a_fetch_cross_the_seek()
    if faults.get("seek_lag"):
        _lag(driver.Consumer, "perform_seek", faults["seek_lag"])
    return app


def _lag(owner: Any, name: str, delay: float) -> None:
    """Let what waits for a coroutine learn late that it has finished."""
    quick = getattr(owner, name)

    async def late(self: Any, *args: Any, **kwargs: Any) -> Any:
        outcome = await quick(self, *args, **kwargs)
        await asyncio.sleep(delay)
        return outcome

    setattr(owner, name, late)


def _let_a_fetch_cross_the_seek() -> None:
    """Hold the fetch that is under way when a recovery ends until the sources are seeked, and these
    until it returns.
    """
    fetch, seek = driver.AIOKafkaConsumerThread._fetch_records, driver.Consumer.perform_seek
    sought, crossed = asyncio.Event(), asyncio.Event()

    async def crossing(self: Any, consumer: Any, active: set[Any], **kwargs: Any) -> Any:
        for _ in range(0 if sought.is_set() else 100):
            if not active:
                await _happens(lambda: sought.is_set() and len(_sources(self, consumer)) >= SOME)
                try:
                    return await fetch(self, consumer, active, **kwargs)
                finally:
                    crossed.set()
            if any(tp in active for tp in consumer._fetcher._records):
                break
            await asyncio.sleep(0.02)
        return await fetch(self, consumer, active, **kwargs)

    async def waiting(self: Any) -> None:
        await seek(self)
        sought.set()
        await _happens(crossed.is_set)

    driver.AIOKafkaConsumerThread._fetch_records, driver.Consumer.perform_seek = crossing, waiting


def _sources(thread: Any, consumer: Any) -> list[Any]:
    return [tp for tp in consumer._fetcher._records if not thread.consumer._is_changelog_tp(tp)]


async def _happens(condition: Callable[[], bool]) -> None:
    for _ in range(150):
        if condition():
            return
        await asyncio.sleep(0.02)
