"""Duties share wakeups, skip what they are late for, and end before a stop does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.service.duties import SAME, Duties, after


class App(SimpleNamespace):
    """What duties need of an app."""

    should_stop = False
    tasks: list[Callable[[], Coroutine[Any, Any, None]]]

    def task(self, fun: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.tasks.append(fun)


@given(st.floats(0, 1e7), st.sampled_from([0.1, 0.2, 0.5, 2.0, 5.0]))
def test_a_duty_is_due_at_the_next_multiple_of_its_interval(now: float, seconds: float) -> None:
    due = after(now, seconds)
    assert now + SAME / 2 < due <= now + seconds + SAME
    assert due / seconds == pytest.approx(round(due / seconds))


def _run(*duties: tuple[float, Callable[[], Awaitable[None]]], until: Callable[[], bool]) -> int:
    """Keep the time of duties until something is true; return how many wakeups that took."""
    app, asked = App(tasks=[]), 0

    async def main() -> None:
        nonlocal asked
        keeper = Duties(app)  # type: ignore[arg-type]
        for seconds, do in duties:
            keeper.every(seconds, do)
        slept = asyncio.sleep

        async def counted(seconds: float) -> None:
            nonlocal asked
            asked += 1
            await slept(seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("streams.service.duties.asyncio.sleep", counted)
            keeping = asyncio.create_task(app.tasks[0]())
            while not until():
                await slept(0.001)
            app.should_stop = True
            await keeping
        await keeper.done()

    asyncio.run(main())
    return asked


def test_duties_of_one_interval_share_a_wakeup() -> None:
    done: list[str] = []

    def note(what: str) -> Callable[[], Awaitable[None]]:
        async def do() -> None:
            done.append(what)

        return do

    asked = _run((0.02, note("a")), (0.02, note("b")), until=lambda: len(done) >= 10)
    assert set(done) == {"a", "b"}
    assert asked <= len(done) // 2 + 2


def test_a_duty_that_lasts_runs_once_at_a_time_and_holds_up_no_other() -> None:
    begun, others, release = [], [], asyncio.Event()

    async def slow() -> None:
        begun.append(1)
        await release.wait()

    async def quick() -> None:
        others.append(1)

    def enough() -> bool:
        if len(others) >= 5 and not release.is_set():
            assert len(begun) == 1
            release.set()
        return len(begun) >= 2

    _run((0.01, slow), (0.01, quick), until=enough)
    assert len(others) > len(begun)


def test_a_stop_waits_for_a_duty_at_work_and_begins_none() -> None:
    begun, finished = [], []

    async def work() -> None:
        begun.append(1)
        await asyncio.sleep(0.05)
        finished.append(1)

    _run((0.01, work), until=lambda: bool(begun))
    assert len(begun) == len(finished) == 1
