"""A worker that counts: one count per key in the durable table, one answer per event on `routes`.

A process of its own, so that it can be killed. Its argument is JSON: `without` names the remedies switched off, `faults`
what is slow, `shape` how the agent takes its events, `poison` the value that its code cannot bear, `answer_bytes` how
large answers are, `spread` under how many more keys each event's offset is written.
"""

import asyncio
import contextlib
import json
import logging
import struct
import sys
from collections.abc import Sequence
from typing import Any

from agents.boundary import fatal
from streams.service.app import App, serve
from streams.settings import load_settings
from tests.integration.faults import arm

NUMBER = struct.Struct(">q")
WATERMARK = b"w"


def number(value: bytes | None, default: int = 0) -> int:
    """Read a count or an offset of the table."""
    return default if value is None else int(NUMBER.unpack(value)[0])


class Counting:
    """The agent's body: count each event once, answer it every time."""

    def __init__(self, app: App, options: dict[str, Any]) -> None:
        self.app = app
        self.spread = options.get("spread", 0)
        self.poison = options.get("poison", "").encode()
        self.answer_bytes = options.get("answer_bytes", 0)
        self.batch_delay = options.get("faults", {}).get("batch_delay", 0.0)
        self.awaits = "await" not in options.get("without", [])

    async def handle(self, events: Sequence[Any]) -> None:
        """Process a batch up to its acknowledgement, which is the caller's."""
        await self.app.guard.check(events)
        await asyncio.sleep(self.batch_delay)
        async with self.app.states.writing() as states:
            for event in events:
                if self.poison and event.message.value == self.poison:
                    raise ValueError("poison")
                partition = states.partition(event.message.partition)
                if event.message.offset > number(partition.get(WATERMARK), -1):
                    key = b"c" + event.message.key
                    partition.put(key, NUMBER.pack(number(partition.get(key)) + 1))
                    partition.put(WATERMARK, NUMBER.pack(event.message.offset))
                    for index in range(self.spread):
                        partition.put(b"s%d" % index, NUMBER.pack(event.message.offset))
            await self.app.commit_states()
        outbox = self.app.outbox()
        for event in events:
            answer = event.message.value.ljust(self.answer_bytes)
            await outbox.send(self.app.settings.topic("routes"), key=event.message.key, value=answer)
        if self.awaits:
            await outbox.delivered()


def add_agent(app: App, options: dict[str, Any]) -> None:
    """Add the agent in one of its shapes."""
    counting = Counting(app, options)
    shape = options.get("shape", "batches")
    surround = contextlib.nullcontext if "leave" in options.get("without", []) else fatal
    settings = app.settings
    decoded = app.topic(settings.topic("requests"), key_type=bytes, value_type=dict, value_serializer="json")
    topic = decoded if shape == "decoded" else app.raw_topic("requests")

    async def batches(stream: Any) -> None:
        async for events in stream.noack_take(settings.batch_size, within=settings.batch_within):
            with surround():
                await counting.handle(events)
                for event in events:
                    await stream.ack(event)

    async def single(stream: Any) -> None:
        async for event in stream.events():
            await counting.handle([event])

    async def skipping(stream: Any) -> None:
        later = []
        async for events in stream.noack_take(settings.batch_size, within=settings.batch_within):
            for event in events:
                if event.message.value == counting.poison:
                    later.append(event)
                else:
                    await counting.handle([event])
                    await stream.ack(event)

    app.agent(topic)({"batches": batches, "decoded": batches, "single": single, "skipping": skipping}[shape])


def main() -> None:
    """Run until SIGTERM, or until something ends the process."""
    options = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    app = arm(load_settings(), without=options.get("without", []), faults=options.get("faults", {}))
    app.states.on_recovered(lambda owned: print(f"RECOVERED {sorted(owned)}", flush=True))
    app.states.on_lost(lambda lost: print(f"LOST {sorted(lost)}", flush=True))
    add_agent(app, options)
    asyncio.run(serve(app))


if __name__ == "__main__":
    main()
