"""The yardstick of `benchmarks.stream`: a bare Faust agent that echoes JSON events one by one."""

from __future__ import annotations

import os
from typing import Any

import faust

app = faust.App(
    os.environ["ECHO_ID"],
    broker=f"kafka://{os.environ['KAFKA_BOOTSTRAP']}",
    topic_partitions=int(os.environ["ECHO_PARTITIONS"]),
    topic_allow_declare=False,
    topic_disable_leader=True,
    web_enabled=False,
    broker_commit_interval=0.5,
)
source = app.topic(
    os.environ["ECHO_IN"], key_type=bytes, key_serializer="raw", value_serializer="json"
)
target = app.topic(
    os.environ["ECHO_OUT"], key_type=bytes, key_serializer="raw", value_serializer="json"
)


async def echo(events: Any) -> None:
    """Send every event on."""
    async for event in events.events():
        await target.send(key=event.key, value=event.value)


app.agent(source)(echo)

if __name__ == "__main__":
    app.main()
