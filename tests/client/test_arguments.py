"""What no service would take is refused before it leaves the process; nothing heavy comes along
with the client.
"""

import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from paretobandit_client import Refused, Router, SyncRouter
from paretobandit_client.checked_events import checked
from paretobandit_client.checks import utc
from paretobandit_client.sent_events import Ask, Cost, Reward, encode
from paretobandit_streams import FOLDERS
from schemas import EVENTS, decode


@pytest.mark.parametrize("router_id", ["", "a b", "ä", "x" * 129])
def test_a_wrong_router_id_is_refused(router_id: str) -> None:
    with pytest.raises(ValueError, match="router id"):
        Router(router_id)


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.inf, math.nan])
def test_a_wrong_time_limit_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="time limit"):
        Router("chat", timeout=timeout)


@pytest.mark.parametrize(
    "event",
    [
        Ask(router_id="a", request_id="r"),
        Ask(router_id="a", request_id="", prompt="x"),
        Ask(router_id="a", request_id="r\n", prompt="x"),
        Ask(router_id="a", request_id="r", context=(math.nan, 1.0)),
        Ask(router_id="r", request_id="1", prompt="p", metadata={"a": object()}),
        Ask(router_id="a", request_id="r", prompt="x", session_id="\x00"),
        Cost(router_id="a", request_id="r"),
        Cost(router_id="a", request_id="r", input_tokens=3),
        Cost(router_id="a", request_id="r", cost_usd=math.nan),
        Cost(router_id="a", request_id="r", cost_usd=-1e-9),
        Cost(router_id="a", request_id="r", cost_usd=1001.0),
        Cost(router_id="a", request_id="r", input_tokens=-1, output_tokens=0),
        Reward(router_id="a", request_id="r", reward=math.nan, source="judge"),
        Reward(router_id="a", request_id="r", reward=1.01, source="judge"),
        Reward(router_id="a", request_id="r", reward=1.0, source=""),
    ],
)
def test_what_no_service_takes_is_refused(event: Ask | Cost | Reward) -> None:
    with pytest.raises(ValueError, match=r"."):
        checked(event)


def test_a_prompt_that_is_too_large_is_refused_as_the_service_would() -> None:
    with pytest.raises(Refused) as refused:
        checked(Ask(router_id="a", request_id="r", prompt="ä" * (2**19 + 1)))
    assert refused.value.reason == "prompt_too_large"
    checked(Ask(router_id="a", request_id="r", prompt="a" * 2**20))


def test_a_time_without_a_zone_is_refused_and_others_become_utc() -> None:
    with pytest.raises(ValueError, match="zone"):
        utc(datetime(2026, 11, 22))
    assert utc(datetime(2026, 11, 22, 3, tzinfo=timezone(timedelta(hours=2)))) == datetime(
        2026, 11, 22, 1, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("topic", "event"),
    [
        (
            "requests",
            Ask(
                router_id="a",
                request_id="r",
                prompt="x",
                session_id="s",
                metadata={"a": [1]},
                max_price_per_1k=0.1,
            ),
        ),
        ("requests", Ask(router_id="a", request_id="r", context=(0.5, 1.0), allowed_models=("m",))),
        (
            "costs",
            Cost(
                router_id="a",
                request_id="r",
                input_tokens=0,
                output_tokens=7,
                model="m",
                revision=2,
            ),
        ),
        ("costs", Cost(router_id="a", request_id="r", cost_usd=0.0)),
        (
            "rewards",
            Reward(
                router_id="a",
                request_id="r",
                reward=1,
                source="judge",
                observed_at=datetime.now(UTC),
                model="m",
            ),
        ),
    ],
)
def test_what_is_sent_is_what_the_service_reads(topic: str, event: Ask | Cost | Reward) -> None:
    read = decode(EVENTS[topic], encode(event))
    for name in event.__struct_fields__:
        assert getattr(read, name) == getattr(event, name)


def test_neither_numpy_nor_faust_nor_the_service_comes_along() -> None:
    code = (
        "import sys, paretobandit_client.kafka; "
        "print(*sorted({n.split('.')[0] for n in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert {"aiokafka", "msgspec"} <= set(loaded)
    assert not {"numpy", "faust", "mode", "pydantic", *FOLDERS} & set(loaded)


def test_a_sync_router_that_is_not_open_says_so() -> None:
    router = SyncRouter("chat")
    with pytest.raises(RuntimeError, match="with block"):
        router.route("x")
    router.close()
