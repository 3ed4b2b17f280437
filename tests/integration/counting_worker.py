"""A worker that counts: one count per key in the durable table, one answer per event on `routes`.

A process of its own, so that it can be killed. Its argument is JSON: `without` names the remedies
switched off, `faults` what is slow, `poison` the value that its code cannot bear, `answer_bytes`
how large answers are, `spread` under how many more keys each event's offset is written.
"""

import asyncio
import json
import logging
import struct
import sys
from collections.abc import Sequence
from typing import Any

from ground.boundary import fatal
from streams.service.lifetime import serve
from streams.service.worker_app import App
from streams.settings import load_settings
from streams.state.table_partition import Partition
from tests.integration.faults import arm

NUMBER = struct.Struct(">q")
WATERMARK = b"w"


def number_of(value: bytes | None, default: int = 0) -> int:
    """Read a count or an offset of the table."""
    return default if value is None else int(NUMBER.unpack(value)[0])


class Counting:
    """What is done with the events: count each once, answer it every time."""

    name = "requests"

    def __init__(self, app: App, options: dict[str, Any]) -> None:
        self.app = app
        self.spread = options.get("spread", 0)
        self.poison = options.get("poison", "").encode()
        self.answer_bytes = options.get("answer_bytes", 0)
        self.batch_delay = options.get("faults", {}).get("batch_delay", 0.0)
        self.awaits = "await" not in options.get("without", [])

    async def serve(self, number: int) -> None:
        """Pass what comes of a partition, up to its acknowledgement."""
        inbox = self.app.sources.inbox(number)
        with fatal():
            while True:
                await inbox.arrived.wait()
                inbox.arrived.clear()
                queue = inbox.queues[self.name]
                while queue:
                    events = [queue.popleft() for _ in range(min(len(queue), 64))]
                    inbox.took(self.name, events)
                    await self.handle(self.app.states.partition(number), events)
                    inbox.finish(self.name, events[-1].offset + 1)

    async def handle(self, partition: Partition, events: Sequence[Any]) -> None:
        """Count and answer events of one partition."""
        await asyncio.sleep(self.batch_delay)
        with partition.writing():
            for event in events:
                if self.poison and event.value == self.poison:
                    raise ValueError("poison")
                if event.offset > number_of(partition.get(WATERMARK), -1):
                    key = b"c" + event.key
                    partition.put(key, NUMBER.pack(number_of(partition.get(key)) + 1))
                    partition.put(WATERMARK, NUMBER.pack(event.offset))
                    for index in range(self.spread):
                        partition.put(b"s%d" % index, NUMBER.pack(event.offset))
        if changes := partition.take():
            await partition.write(changes)
        routes = self.app.settings.topic("routes")
        deliveries = [
            await self.app.produce(routes, event.value.ljust(self.answer_bytes), event.key)
            for event in events
        ]
        if self.awaits:
            await asyncio.gather(*deliveries)


def add_agent(app: App, options: dict[str, Any]) -> None:
    """Let it serve every partition that this worker has."""
    counting = Counting(app, options)
    serving: dict[int, asyncio.Task[None]] = {}

    def recovered(owned: frozenset[int]) -> None:
        for number in owned - serving.keys():
            serving[number] = asyncio.create_task(counting.serve(number))

    def lost(numbers: frozenset[int]) -> None:
        for number in numbers & serving.keys():
            serving.pop(number).cancel()

    app.states.on_recovered(recovered)
    app.states.on_lost(lost)


def main() -> None:
    """Run until SIGTERM, or until something ends the process."""
    options = json.loads(sys.argv[1])
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout
    )
    app = arm(load_settings(), without=options.get("without", []), faults=options.get("faults", {}))
    app.states.on_recovered(lambda owned: print(f"RECOVERED {sorted(owned)}", flush=True))
    app.states.on_lost(lambda lost: print(f"LOST {sorted(lost)}", flush=True))
    add_agent(app, options)
    asyncio.run(serve(app))


if __name__ == "__main__":
    main()
