"""Run a worker from its first check until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine

import uvloop

from streams.log.rights_check import require_rights
from streams.log.service_topics import TopicsNotReady, check_topics, cluster_id
from streams.service.collecting import collect_after_losses, little_by_little
from streams.service.worker_app import App
from streams.state.lost_state import require_state
from streams.state.ownership import require_own_group

GIVE_WAY = 0.0005
"""Seconds after which a busy thread lets another one go on (Python's default is 5 ms): each system
call of a fetch waits for the event loop of the lanes.
"""


def run(work: Coroutine[object, object, None]) -> None:
    """Run a worker's work in an event loop of libuv."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


async def serve(app: App) -> None:
    """Check the topics, run the app until SIGTERM or SIGINT, and stop it in order.

    Raises:
        TopicsNotReady: a worker could not work on these topics; a line each says what to run.
        ForeignState: the group is another service's; the text says what to set.
        StateLost: the changelog is gone; the text says what can be done.
        MissingRights: its user in Kafka or Redis lacks rights; a line each says which, and what to
        run.
    """
    # Raised below: without the right to see it, a topic looks as if it was missing.
    problems = await check_topics(app.settings)
    await require_rights(app.settings, "worker")
    await require_own_group(app.settings)
    await require_state(app.settings)
    if problems:
        raise TopicsNotReady("\n".join(problems))
    if app.settings.redis_url is not None:
        from streams.state.redis_rights import require_redis

        await require_redis(app.settings)
        app.cluster_id = await cluster_id(app.settings)
    sys.setswitchinterval(GIVE_WAY)  # of this process, which does nothing but serve
    collect_after_losses(app.states)
    with little_by_little():
        await _run(app)


async def _run(app: App) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    # Not awaited: a signal may come while it waits for Kafka.
    starting = asyncio.create_task(app.start())
    ends = {asyncio.create_task(stop.wait()), asyncio.create_task(app.wait_until_stopped())}
    await asyncio.wait({starting, *ends}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        await starting
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    await app.stop()
    for task in (starting, *ends):
        task.cancel()
