"""Requests are found on the log whatever their ids hold, and however a writer escapes them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from doors.console.found_records import find
from doors.gateway.lookup import Lookup
from doors.gateway.rate_limits import Recent
from schemas import RouteDecided
from streams.settings import Settings

IDS = ['say "hi"', "a\\b", "a/b", "<a&b>", "it's", "a+b", "größe", "plain-1"]
ROUTE = RouteDecided.model_json_schema()["examples"][0]


class Bus:
    """The records of some topics, each written with as many escapes as JSON allows its writer."""

    def __init__(self, **events: dict[str, object]) -> None:
        self._values = {name: _escaped(event) for name, event in events.items()}

    async def backwards(self, name: str, router_id: str, **_: object) -> AsyncIterator[Any]:
        if name in self._values:
            yield SimpleNamespace(
                key=router_id.encode(), value=self._values[name], headers=(), timestamp=0, offset=0
            )


def _escaped(event: dict[str, object]) -> bytes:
    text = json.dumps(event)
    for sign in "/<>&'+`":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode()


@pytest.mark.parametrize("request_id", IDS)
async def test_the_gateway_finds_a_decision(request_id: str) -> None:
    route = {**ROUTE, "request_id": request_id, "repeat": False}
    lookup = Lookup(Settings(), Recent(1000))
    found = await lookup._search(Bus(routes=route), route["router_id"], request_id)
    assert found is not None and found.request_id == request_id
    assert await lookup._search(Bus(routes=route), route["router_id"], "another") is None


@pytest.mark.parametrize("request_id", IDS)
async def test_explain_finds_what_was_said_of_a_request(request_id: str) -> None:
    bill = {"router_id": "chat", "request_id": request_id, "cost_usd": 0.5}
    bus: Any = Bus(costs=bill)
    assert len((await find(bus, "chat", request_id)).costs) == 1
    assert not (await find(bus, "chat", "another")).costs
