"""Measure how fast a worker reads its changelog back, beside Faust's table on the same records.

python -m benchmarks.recovery_rate --records 80000 --size 100
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import faust
from aiokafka import AIOKafkaProducer

from commands.broker.child import spawn
from commands.broker.local import LocalKafka
from streams.changelog_format import EPOCH
from streams.faust.faust_options import faust_options
from streams.log.service_topics import create_topics
from streams.service.lifetime import serve
from streams.service.worker import build_worker
from streams.settings import Settings, load_settings

ROOT = Path(__file__).parents[3]
PARTITIONS = 8
STARTED, ENDED = "Restoring state from changelog topics", "Done reading from changelog topics"


async def fill(settings: Settings, *, records: int, size: int) -> None:
    """Write a changelog: requests of one router, each of them once."""
    producer = AIOKafkaProducer(**settings.kafka_auth(), linger_ms=20)
    await producer.start()
    value, headers = os.urandom(size), [(EPOCH, b"1")]
    for number in range(records):
        await producer.send(
            settings.changelog,
            value,
            b"x\x00home\x00%d" % number,
            number % PARTITIONS,
            headers=headers,
        )
    await producer.stop()


def stock_app(settings: Settings) -> Any:
    """Return an app with Faust's own table on the same changelog, in memory, and Faust's own
    recovery.
    """
    options = {
        name: value for name, value in faust_options(settings).items() if name != "TableManager"
    }
    app = faust.App(settings.app_id, **options)
    raw = {
        "key_type": bytes,
        "value_type": bytes,
        "key_serializer": "raw",
        "value_serializer": "raw",
    }
    app.Table("router_states", partitions=settings.partitions, key_type=bytes, value_type=bytes)

    async def take_nothing(stream: Any) -> None:
        async for _ in stream:
            """Take it."""

    app.agent(app.topic(settings.topic("requests"), **raw))(take_nothing)
    return app


def recovery_seconds(settings: Settings, log: Path, kind: str) -> float:
    """Run one worker of a kind until it has recovered, and return how long it read, in seconds."""
    environment = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
    }
    environment |= {"PB_INSTANCE_ID": "reader", "PB_WEB_PORT": "0", "PB_ENCODER_BACKEND": "none"}
    command = [sys.executable, "-m", "benchmarks.recovery_rate", "--serve", kind]
    process = spawn(command, log=log, env={**os.environ, **environment}, cwd=ROOT)
    try:
        while ENDED not in log.read_text(errors="replace"):
            if process.poll() is not None:
                raise RuntimeError(f"the worker ended:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)
    finally:
        process.terminate()
        process.wait()
    return _time_of(ENDED, log) - _time_of(STARTED, log)


def _time_of(text: str, log: Path) -> float:
    line = next(line for line in log.read_text(errors="replace").splitlines() if text in line)
    found = re.match(r"\S+ \S+", line)
    assert found is not None
    return datetime.strptime(found[0], "%Y-%m-%d %H:%M:%S,%f").timestamp()


BUILD: dict[str, Callable[[Settings], Any]] = {"stock": stock_app, "ours": build_worker}


def run(kind: str) -> None:
    """Be a worker of a kind, with its settings from the environment, until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        stream=sys.stdout,
    )
    app = BUILD[kind](load_settings())
    app.settings = load_settings()
    asyncio.run(serve(app))


def main() -> None:
    """Measure both in turn, and print records per second."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=80_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--serve", choices=BUILD, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        run(arguments.serve)
        return
    name = f"rate-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder, LocalKafka(full_jit=True) as kafka:
        settings = Settings(
            bootstrap=kafka.bootstrap, prefix=f"{name}.", app_id=name, partitions=PARTITIONS
        )
        asyncio.run(create_topics(settings))
        asyncio.run(fill(settings, records=arguments.records, size=arguments.size))
        for number in range(arguments.rounds):
            for kind in BUILD:
                seconds = recovery_seconds(settings, Path(folder) / f"{kind}-{number}.log", kind)
                print(
                    f"{kind}: {arguments.records / seconds:,.0f} records/s ({seconds:.2f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
