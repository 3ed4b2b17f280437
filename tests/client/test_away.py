"""What the client does when nothing answers at its address is the same over Kafka and over HTTP."""

import pytest

from commands.broker.wire import free_ports
from paretobandit_client import Router, Undelivered, Unreachable


@pytest.mark.parametrize("address", ["bootstrap", "url"])
async def test_a_service_that_is_away_stops_no_application(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    where = f"127.0.0.1:{port}" if address == "bootstrap" else f"http://127.0.0.1:{port}"
    away = {address: where, "connect_timeout": 0.2, "timeout": 0.05}
    with pytest.raises(Unreachable, match=str(port)):
        await Router("chat", **away).__aenter__()  # type: ignore[arg-type]
    asking = Router("chat", fallback="small", delivery_timeout=0.5, **away)  # type: ignore[arg-type]
    async with asking:
        decision = await asking.route("Why is the sky blue?")
        assert (decision.model, decision.fallback) == ("small", True)
        again = await asking.route("x" * 2**20, request_id="long")
        assert (again.fallback, asking.counts.fallbacks) == (True, 2)
        said = [one.getMessage() for one in caplog.records if "the fallback small:" in one.message]
        assert len(said) == 1
        assert "no decision came within 0.05 s" in said[0]
        with pytest.raises(Undelivered):
            await decision.cost(cost_usd=0.1)
