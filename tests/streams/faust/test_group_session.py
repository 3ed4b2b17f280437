"""The session: a worker writes only while its group has confirmed it for no longer than a session
ago.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from streams.faust.group_session import GroupSession, MembershipLost
from streams.faust.outgoing import Outgoing
from streams.faust.record_batches import RecordBatches
from streams.service.worker_app import build_app
from streams.settings import Settings


class Time:
    """A clock that moves when somebody sleeps; `then` is what happens meanwhile, by time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.then: list[tuple[float, object]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if not self.then and self.now > 1000.0:
            raise TimeoutError("waits for ever")
        while self.then and self.then[0][0] <= self.now:
            self.then.pop(0)[1]()  # type: ignore[operator]


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def session(time: Time) -> GroupSession:
    session = GroupSession(10.0, clock=time, sleep=time.sleep)
    session.join()
    return session


async def test_member_writes_at_once(session: GroupSession, time: Time) -> None:
    time.now += 9.9
    await session.held()
    assert time.now == 109.9


async def test_nobody_writes_before_the_group_has_taken_it_in(time: Time) -> None:
    with pytest.raises(MembershipLost):
        await GroupSession(10.0, clock=time, sleep=time.sleep).held()


async def test_worker_that_slept_through_its_session_waits_until_its_group_knows_it_still(
    session: GroupSession, time: Time
) -> None:
    time.now += 60.0
    time.then = [(161.0, lambda: session.renew(160.9))]
    await session.held()
    assert 161.0 <= time.now < 161.1


async def test_worker_that_slept_through_its_session_never_writes_when_its_group_has_gone_on(
    session: GroupSession, time: Time
) -> None:
    time.now += 60.0
    time.then = [(161.0, session.lose)]
    with pytest.raises(MembershipLost):
        await session.held()


async def test_what_waited_is_not_written_after_the_worker_has_joined_anew(
    session: GroupSession, time: Time
) -> None:
    time.now += 60.0

    def join_anew() -> None:
        session.lose()
        session.join()

    time.then = [(161.0, join_anew)]
    with pytest.raises(MembershipLost):
        await session.held()
    await session.held()


async def test_worker_that_its_group_refused_writes_nothing_even_within_its_session(
    session: GroupSession,
) -> None:
    assert session.is_member
    session.lose()
    assert not session.is_member
    with pytest.raises(MembershipLost):
        await session.held()


async def test_late_confirmation_of_an_old_heartbeat_shortens_nothing(
    session: GroupSession, time: Time
) -> None:
    session.renew(105.0)
    session.renew(103.0)
    time.now = 114.9
    await session.held()
    assert time.now == 114.9


async def test_heartbeat_counts_from_when_it_was_sent(session: GroupSession, time: Time) -> None:
    time.now = 112.0
    session.renew(101.0)
    time.then = [(113.0, lambda: session.renew(112.5))]
    await session.held()
    assert time.now >= 113.0


class Producer:
    """Takes records, and delivers each of them at once."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    async def send(self, topic: str, *args: Any, **options: Any) -> Any:
        self.taken.append(topic)
        return self._delivered()

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> Any:
        return await self.send(topic)

    async def partitions_for(self, topic: str) -> set[int]:
        return {0}

    async def _delivered(self) -> Any:
        return SimpleNamespace(offset=0)


async def test_nothing_is_written_and_nothing_published_without_a_session(
    session: GroupSession,
) -> None:
    producer = Producer()
    batches = RecordBatches(lambda: producer, "changelog", 10_000, may_write=session.held)
    outgoing = Outgoing(lambda: producer, may_write=session.held, codec="none")

    async def say() -> None:
        await (await outgoing.send("routes", b"{}", b"home"))

    async def everything() -> list[type[Exception] | None]:
        found: list[type[Exception] | None] = []
        for act in (
            lambda: batches.publish(0, {b"a": b"1"}, 1),
            say,
            lambda: batches.send_large("dlq", key=b"home", value=b"{", headers=[]),
        ):
            try:
                await act()
                found.append(None)
            except MembershipLost as error:
                found.append(type(error))
        return found

    assert await everything() == [None, None, None]
    assert producer.taken == ["changelog", "routes", "dlq"]
    session.lose()
    assert await everything() == [MembershipLost] * 3
    assert producer.taken == ["changelog", "routes", "dlq"]


async def test_a_worker_that_is_no_member_yet_says_nothing() -> None:
    delivery = await build_app(Settings()).produce("pb.routes", b"{}", b"home", 0)
    with pytest.raises(MembershipLost):
        await delivery


async def test_a_session_is_as_long_as_the_broker_grants(session: GroupSession, time: Time) -> None:
    session.extend(20.0)
    session.renew(101.0)
    time.now = 120.9
    await session.held()
    assert time.now == 120.9


async def test_gap_is_what_passed_between_two_confirmed_heartbeats(
    session: GroupSession, time: Time
) -> None:
    assert session.renew(103.0) == 3.0
    assert session.renew(103.5) == 0.5
    assert session.renew(102.0) == 0.0
    time.now = 140.0
    session.join()  # while it joins the group it sends none
    assert session.renew(140.25) == 0.25
