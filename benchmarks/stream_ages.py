"""Measure how old the books of a worker become that has more to do than it can.

    uv run python -m benchmarks.stream_ages [--quick]

An application sends a bill and a label of each decision as soon as it reads it. In a closed loop 18
routers have 300 undecided requests each, all the time; then requests come without waiting at 1.5
times the rate of the closed loop. A bill's age counts from when the broker has it to the first
state on `pb.lambda` that contains it. Two minutes each.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Iterator

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import RecordMetadata

from benchmarks.report import command, print_figures, print_table
from benchmarks.stream_sides import Bench
from benchmarks.streaming import TICK, Events, bills_and_rewards
from commands.broker.choose import choose_broker

ROUTERS = 18
WINDOW = 300
"""Requests of each router that await their decision in a closed loop: more than a worker decides in
the time of a round trip."""
BEYOND = 1.5
"""Rate of the requests that are sent without waiting ÷ what a worker does in a closed loop."""
WARM_SHARE = 0.2
"""Part of a run at its start that does not count: routers are unpacked, groups find their size."""


class Application:
    """An application that sends a bill and a label of each decision as soon as it reads it.

    Attributes:
        decided: how many decisions it has read.
    """

    def __init__(self, bench: Bench, producer: AIOKafkaProducer) -> None:
        self._topic, self._producer = bench.settings.topic, producer
        self._asked: deque[tuple[bytes, bytes]] = deque()
        self._bench, self.decided = bench, 0
        self._bills: list[asyncio.Future[RecordMetadata]] = []
        self._contained: dict[int, list[tuple[int, int]]] = defaultdict(list)

    async def ask(self, count: int) -> None:
        """Send so many requests."""
        while len(self._asked) < count:
            self._asked += self._bench.more(1_000)
        # All at once: who asks meanwhile takes others.
        for key, value in [self._asked.popleft() for _ in range(count)]:
            await self._producer.send(self._topic("requests"), value, key=key)

    async def read(self, consumer: AIOKafkaConsumer, *, again: bool) -> None:
        """Read decisions and states until it is cancelled; ask again for each decision."""
        while True:
            for tp, records in (await consumer.getmany(timeout_ms=20)).items():
                if tp.topic == self._topic("lambda"):
                    for record in records:
                        applied = orjson.loads(record.value)["applied"]["costs"]
                        self._contained[tp.partition].append((applied, record.timestamp))
                else:
                    await self._pay([(record.key, record.value) for record in records])
                    if again:
                        await self.ask(len(records))

    async def _pay(self, decisions: Events) -> None:
        self.decided += len(decisions)
        bills, rewards = bills_and_rewards(decisions, seed=self.decided)
        for (key, bill), (_, reward) in zip(bills, rewards, strict=True):
            sent = await self._producer.send(self._topic("costs"), bill, key=key)
            self._bills.append(sent)
            await self._producer.send(self._topic("rewards"), reward, key=key)

    async def ages(self) -> list[float]:
        """Return the milliseconds from when the broker had each bill to the first published state
        that has it, or to the end where none has it."""
        now = 1000 * time.time()
        bills = sorted(
            (one.timestamp, one.partition, one.offset) for one in [await f for f in self._bills]
        )
        states = {number: iter(found) for number, found in self._contained.items()}
        at: dict[int, tuple[int, float]] = defaultdict(lambda: (-1, now))
        return [_seen(states, at, number, offset, now) - sent for sent, number, offset in bills]


def _seen(
    states: dict[int, Iterator[tuple[int, int]]],
    at: dict[int, tuple[int, float]],
    number: int,
    offset: int,
    now: float,
) -> float:
    while at[number][0] < offset:
        at[number] = next(states.get(number, iter(())), (offset, now))
    return at[number][1]


async def saturated(
    bench: Bench, seconds: float, *, rate: float | None
) -> tuple[float, list[float]]:
    """Return the decisions a second of a worker that has more to do than it can, and the ages of
    its bills in milliseconds.

    Args:
        rate: requests a second; None: each router has so many undecided ones all the time.
    """
    settings = bench.settings
    async with (
        AIOKafkaProducer(bootstrap_servers=settings.bootstrap, linger_ms=5) as producer,
        AIOKafkaConsumer(
            settings.topic("routes"), settings.topic("lambda"), bootstrap_servers=settings.bootstrap
        ) as consumer,
    ):
        application = Application(bench, producer)
        reading = asyncio.create_task(application.read(consumer, again=rate is None))
        began = time.monotonic()
        if rate is None:
            await application.ask(WINDOW * bench.routers)
            await asyncio.wait([reading], timeout=seconds)
        else:
            asked = 0
            while (passed := time.monotonic() - began) < seconds and not reading.done():
                due = int(rate * passed) - asked
                await application.ask(due)
                asked += due
                await asyncio.sleep(TICK)
        took = time.monotonic() - began
        if reading.done():
            await reading
        reading.cancel()
        ages = await application.ages()
    return application.decided / took, ages[int(WARM_SHARE * len(ages)) :]


async def ages(bootstrap: str, seconds: float) -> dict[str, float]:
    """Return the age of bills in a closed loop that keeps a worker busy, and where more is sent
    than it can do."""
    found = {}
    rate = None
    for name in ("in a closed loop", f"at {BEYOND} × what a worker can do"):
        bench = Bench(bootstrap, ROUTERS)
        await bench.create()
        with bench.worker():
            await bench.in_force()
            done, waited = await saturated(bench, seconds, rate=rate)
        waited.sort()
        found[f"decisions a second {name}"] = done
        found[f"p99 ms of a bill {name}"] = waited[int(0.99 * len(waited))]
        found[f"longest ms of a bill {name}"] = waited[-1]
        rate = BEYOND * done
    return found


def run(quick: bool) -> None:
    """Print the table."""
    with choose_broker() as broker:
        found = asyncio.run(ages(broker.bootstrap, 10.0 if quick else 120.0))
    print_table(
        f"{ROUTERS} routers, a bill and a label of each decision",
        ["what", "measured"],
        [[name, value] for name, value in found.items()],
    )
    print_figures("stream_ages", found)


if __name__ == "__main__":
    command(run)()
