"""The boundary of agents: in order, awaited, or not at all."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.group import Answers
from agents.outbox import DeadLetters, Outbox
from ground.boundary import Attempt, GaveUp, retrying, undoing
from schemas.dlq import DeadLetter
from schemas.event import MalformedEvent, decode_keyed
from schemas.reasons import Reason
from schemas.refusals import EventRefused


@dataclass
class Message:
    offset: int
    topic: str = "pb.requests"
    partition: int = 0
    key: bytes | None = b"r1"
    value: bytes | None = b"{}"


@dataclass
class Sent:
    records: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None

    async def __call__(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Any = None,
    ) -> Any:
        self.records.append((topic, value, key, partition, headers))

        async def delivery() -> None:
            if self.error:
                raise self.error

        return delivery()


async def test_a_refused_delivery_is_raised() -> None:
    sent = Sent(error=ValueError("too large"))
    outbox = Outbox({"routes": "pb.routes"}, sent, {})
    with pytest.raises(ValueError, match="too large"):
        await outbox.deliver(Answers(routes=[("home", b"v", ())]))
    assert sent.records == [("pb.routes", b"v", b"home", None, ())]


async def dead_letter(message: Message) -> tuple[list[Any], list[Any], list[str]]:
    sent, large, reasons = Sent(), [], []

    async def send_large(topic: str, **record: Any) -> None:
        large.append((topic, record))

    letters = DeadLetters(
        "pb.", stage="route_requests", send_large=send_large, count=reasons.append
    )
    error = MalformedEvent(Reason.MALFORMED_JSON, "cut off")
    await asyncio.gather(*await letters.send(sent, message, error))
    return sent.records, large, reasons


async def test_a_dead_letter_holds_the_sources_bytes_and_why() -> None:
    [(topic, value, key, partition, headers), told], large, reasons = await dead_letter(
        Message(7, value=b"{")
    )
    letter = DeadLetter.from_headers(headers)
    assert (topic, value, key, partition, large) == ("pb.dlq", b"{", b"r1", None, [])
    assert (letter.topic, letter.offset, letter.reason, letter.stage) == (
        "pb.requests",
        7,
        "malformed_json",
        "route_requests",
    )
    assert reasons == ["malformed_json"]
    refusal = decode_keyed(EventRefused, key=told[2], value=told[1])
    assert (told[0], refusal.router_id, refusal.request_id) == ("pb.refusals", "r1", None)
    assert (refusal.topic, refusal.partition, refusal.offset, refusal.reason) == (
        "requests",
        0,
        7,
        "malformed_json",
    )


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (b"home", b'{"router_id": "home", "request_id": "r", "prompt": "secret"}', ("home", "r")),
        (b"home", b'{"router_id": "home", "request_id": "a\\nb", "reward": NaN}', ("home", None)),
        (b"home", b'{"router_id": ["home"], "request_id": 7}', ("home", None)),
        (None, b'{"router_id": "home", "request_id": "r", "cost_usd": NaN}', ("home", "r")),
        (b"other", b'{"router_id": "home", "request_id": "r"}', ("home", "r")),
        (b"home", None, ("home", None)),
        (b"no router", b"[" * 100_000, None),
        (None, b"\xff", None),
    ],
)
async def test_clients_are_told_whose_event_was_refused(
    key: bytes | None, value: bytes | None, named: tuple[str, str | None] | None
) -> None:
    sent, _, _ = await dead_letter(Message(7, key=key, value=value))
    told = [
        decode_keyed(EventRefused, key=key, value=value)
        for topic, value, key, *_ in sent
        if topic == "pb.refusals"
    ]
    assert [(refusal.router_id, refusal.request_id) for refusal in told] == [named] * (
        named is not None
    )
    assert not any(b"secret" in value for topic, value, *_ in sent if topic == "pb.refusals")


@pytest.mark.parametrize(("key", "value"), [(b"k", b"x" * 600_000), (None, None)])
async def test_what_a_usual_send_refuses_goes_another_way(
    key: bytes | None, value: bytes | None
) -> None:
    usual, large, _ = await dead_letter(Message(7, key=key, value=value))
    assert not any(topic == "pb.dlq" for topic, *_ in usual)
    assert [(record["key"], record["value"]) for _, record in large] == [(key, value)]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def attempt(failures: int, deadline: float) -> tuple[int, float]:
    clock, calls = Clock(), 0

    async def call() -> int:
        nonlocal calls
        calls += 1
        if calls <= failures:
            raise ConnectionError("away")
        return calls

    made = await retrying(
        call, transient=(ConnectionError,), deadline=deadline, clock=clock, sleep=clock.sleep
    )
    return made, clock.now


async def test_a_transient_failure_is_tried_again() -> None:
    assert (await attempt(4, deadline=60.0))[0] == 5


async def test_a_failure_that_stays_is_given_up_before_its_deadline() -> None:
    with pytest.raises(GaveUp):
        await attempt(10_000, deadline=5.0)


async def test_other_failures_are_not_tried_again() -> None:
    async def call() -> None:
        raise KeyError("defect")

    with pytest.raises(KeyError):
        await retrying(call, transient=(ConnectionError,), deadline=5.0, clock=Clock())


def test_an_exception_in_a_batch_ends_the_process_at_once() -> None:
    code = "from ground.boundary import fatal\nwith fatal():\n    1 / 0\nprint('still here')"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "ZeroDivisionError" in ended.stderr


def test_an_attempt_notes_what_goes_wrong_and_lets_cancellation_pass() -> None:
    with Attempt() as wrong:
        raise LookupError("gone")
    assert str(wrong.error) == "gone"
    with Attempt() as right:
        pass
    assert right.error is None
    with pytest.raises(asyncio.CancelledError), Attempt():
        raise asyncio.CancelledError


def test_what_was_begun_is_undone_where_anything_escapes_and_only_there() -> None:
    undone: list[str] = []
    with undoing(lambda: undone.append("kept")):
        pass
    for error in (LookupError, asyncio.CancelledError):
        with pytest.raises(error), undoing(lambda: undone.append("undone")):
            raise error
    assert undone == ["undone", "undone"]
