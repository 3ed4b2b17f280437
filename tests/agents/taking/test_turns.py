"""Partitions take turns: groups with requests first, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count, pairwise

import pytest

from agents.taking.turns import IN_A_ROW, LOOKS, TOGETHER, Turns

NO_REQUESTS, REQUESTS = (lambda: False), (lambda: True)


def long_groups() -> Turns:
    """Return turns of which each group fills one: the clock goes on by that at each look."""
    return Turns(count(0.0, 2 * TOGETHER).__next__)


async def test_groups_with_requests_go_first_and_nobody_waits_for_ever() -> None:
    turns, order = long_groups(), list[str]()

    async def take(name: str, urgent: Callable[[], bool]) -> None:
        await turns.take(urgent)
        order.append(name)

    await turns.take(NO_REQUESTS)
    bills = [asyncio.create_task(take("bill", NO_REQUESTS)) for _ in range(2)]
    requests = [asyncio.create_task(take("request", REQUESTS)) for _ in range(2 * IN_A_ROW)]
    await asyncio.gather(*bills, *requests)
    # The first turn was given before any request came.
    assert order[0] == "bill"
    assert order[1:] == ["request"] * IN_A_ROW + ["bill"] + ["request"] * IN_A_ROW


async def test_a_request_that_comes_while_its_lane_waits_goes_before_the_other_lanes() -> None:
    turns, order, came = long_groups(), list[str](), list[str]()

    async def take(name: str) -> None:
        await turns.take(lambda: name in came)
        order.append(name)

    await turns.take(NO_REQUESTS)
    lanes = [asyncio.create_task(take(name)) for name in ("a", "b", "c")]
    await asyncio.sleep(0)
    came.append("c")
    await asyncio.gather(*lanes)
    assert order[-1] == "b"
    assert order.index("c") < 2  # one turn may have been given already


@pytest.mark.parametrize("turns", [long_groups(), Turns(lambda: 7.0)], ids=["long", "short"])
async def test_a_request_under_way_goes_on_between_the_groups_of_a_backlog(turns: Turns) -> None:
    steps, groups = 0, list[int]()

    async def answer() -> None:
        nonlocal steps
        while len(groups) < 4:
            steps += 1
            await asyncio.sleep(0)

    async def bills() -> None:
        for _ in range(4):
            await turns.take(NO_REQUESTS)
            groups.append(steps)

    answering = asyncio.create_task(answer())
    turns.watch(answering)
    async with asyncio.timeout(5):
        await asyncio.gather(bills(), answering)
    assert all(after - before >= LOOKS for before, after in pairwise(groups))
    # Nobody waits for an answer any more: a backlog goes on at once.
    groups.clear()
    steps = 0
    counting = asyncio.create_task(answer())
    async with asyncio.timeout(5):
        await asyncio.gather(bills(), counting)
    assert groups[-1] < LOOKS


async def test_a_turn_whose_task_is_cancelled_is_passed_on() -> None:
    turns = long_groups()
    await turns.take(NO_REQUESTS)
    gone = asyncio.create_task(turns.take(REQUESTS))
    follows = asyncio.create_task(turns.take(REQUESTS))
    await asyncio.sleep(0)
    gone.cancel()
    async with asyncio.timeout(5):
        await follows
        await turns.take(NO_REQUESTS)


async def looks_of(turns: Turns, lanes: int) -> list[int]:
    """Return how many looks at the network there were before each lane's group, of lanes that
    something comes for at once."""
    looks, order, arrived = 0, list[int](), asyncio.Event()

    async def look() -> None:
        nonlocal looks
        while len(order) < lanes:
            looks += 1
            await asyncio.sleep(0)

    async def lane() -> None:
        await arrived.wait()
        await turns.take(NO_REQUESTS)
        order.append(looks)

    tasks = [asyncio.create_task(lane()) for _ in range(lanes)]
    await asyncio.sleep(0)
    arrived.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks, asyncio.create_task(look()))
    return order


async def test_what_comes_of_all_partitions_together_is_one_turn() -> None:
    assert len(set(await looks_of(Turns(lambda: 7.0), lanes=16))) == 1


@pytest.mark.parametrize("part", [3, 4])
async def test_a_turn_ends_when_its_time_is_over(part: int) -> None:
    # Of a turn that begins, and of each group that would join, there is one look at the clock.
    clock = count(0.0, TOGETHER / part)
    order = await looks_of(Turns(clock.__next__), lanes=12)
    assert len(set(order[:part])) == 1
    assert order[part] > order[0]
    assert all(after > before for before, after in pairwise(order[part:]))


async def test_a_clock_that_goes_back_ends_the_turn() -> None:
    order = await looks_of(Turns(count(0.0, -1.0).__next__), lanes=4)
    assert all(after > before for before, after in pairwise(order))
