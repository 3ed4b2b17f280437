"""What the client does when nothing answers at its address is the same over Kafka and over HTTP."""

import asyncio
import re

import pytest

from commands.broker.wire import free_ports
from paretobandit_client import Router, Undelivered, Unreachable
from paretobandit_client.http import HttpLink
from paretobandit_client.sent_events import Ask, Cost


@pytest.mark.parametrize("address", ["bootstrap", "url"])
async def test_a_service_that_is_away_stops_no_application(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    where = f"127.0.0.1:{port}" if address == "bootstrap" else f"http://127.0.0.1:{port}"
    away = {address: where, "connect_timeout": 0.2, "timeout": 0.05}
    with pytest.raises(Unreachable, match=str(port)) as unreachable:
        await Router("chat", **away).__aenter__()  # type: ignore[arg-type]
    assert ("start a" if address == "bootstrap" else "pbstream gateway") in str(unreachable.value)
    asking = Router("chat", fallback="small", delivery_timeout=0.5, **away)  # type: ignore[arg-type]
    async with asking:
        decision = await asking.route("Why is the sky blue?")
        assert (decision.model, decision.fallback) == ("small", True)
        again = await asking.route("x" * 2**20, request_id="long")
        assert (again.fallback, asking.counts.fallbacks) == (True, 2)
        said = [one.getMessage() for one in caplog.records if "the fallback small:" in one.message]
        assert len(said) == 1
        assert "no decision came within 0.05 s" in said[0]
        with pytest.raises(Undelivered) as given_up:
            await decision.cost(cost_usd=0.1)
        # One line says it all, whoever prints it.
        assert re.fullmatch(r".* did not take the (bill of|request) .+", str(given_up.value))
        assert given_up.value.__cause__ is None and given_up.value.__suppress_context__


async def test_a_bill_is_given_up_though_its_request_is_still_on_its_way() -> None:
    (port,) = free_ports(1)
    link = HttpLink(f"http://127.0.0.1:{port}", key=None, router_id="chat", delivery_timeout=0.2)
    with pytest.raises(Unreachable):
        await link.start(seconds=0.1)
    asked = asyncio.create_task(link.ask(Ask(router_id="chat", request_id="q-1"), seconds=None))
    never = asyncio.create_task(asyncio.Event().wait())
    with pytest.raises(Undelivered, match=r"the bill of q-1 within 0\.2 s"):
        await link._report(Cost(router_id="chat", request_id="q-1", cost_usd=0.1), never)
    for task in (asked, never):
        task.cancel()
    await link.stop(seconds=0.0)
