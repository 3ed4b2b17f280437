"""An incumbent on a real worker: it answers its share, across a crash, and a replay and an audit
find the same."""

import asyncio
from pathlib import Path

from router_state.incumbents.incumbents import Incumbents
from router_state.state import invariants
from tests.integration.commands import done_json
from tests.integration.service import cost, request, reward, router, running_service
from tests.router_state.core_reference import having

BILL = 0.002


async def test_an_incumbent_answers_its_share_across_modes_and_a_crash(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path) as service:
        worker = await service.ready(service.worker())
        home = "acme.tenth"
        declared = router(home)
        before, *_ = sorted(declared["models"])
        kept = {"incumbent": before, "by": "session", "holdout": 0.1}
        await service.send("routers", declared | kept | {"mode": "observe"})
        routes = []
        for n in range(60):
            if n == 20:
                await service.send("routers", declared | kept | {"share": 0.5})
                await service.until(
                    lambda: (
                        (service.lambda_of(home).get("incumbent") or {}).get("routed_share") == 0.5
                    ),
                    "the share",
                )
            if n == 40:
                worker.kill()
                worker = await service.ready(service.worker())
            await service.send("requests", request(home, f"q{n}", seed=n, session_id=f"s{n % 20}"))
            await service.until(lambda n=n: service.route(f"q{n}"), "an answer")
            route = service.route(f"q{n}")
            assert route is not None
            routes.append(route)
            await service.send("costs", cost(home, f"q{n}", BILL))
            await service.send("rewards", reward(home, f"q{n}", 0.5))
        assert {route["model"] for route in routes[:20]} == {before}
        assert {route["routed_share"] for route in routes[:20]} == {0.0}
        assert all(route["would_route"]["model"] in declared["models"] for route in routes[:20])
        # A session is answered by the same side before and after the crash.
        answered_by = [route["routed_by"] for route in routes]
        assert answered_by[20:40] == answered_by[40:] and len(set(answered_by[20:])) > 1
        assert "router" not in answered_by[:20]
        routed = answered_by.count("router")
        await service.until(
            lambda: (
                service.lambda_of(home).get("settled") == 60
                and service.lambda_of(home).get("rewards_applied") == 60
            ),
            "bills and rewards",
        )
        standing = service.lambda_of(home)["incumbent"]
        assert standing["answered"] == standing["billed"] == 60 - routed
        assert abs(standing["spend_usd"] - BILL * (60 - routed)) < 1e-9

        engine = await service.engine(home)
        invariants.check(engine.state, engine.records)
        assert having(engine.state, Incumbents).answered == 60 - routed
        settings = service.settings
        verdict = await asyncio.to_thread(done_json, settings, "replay", "--verify", router=home)
        assert verdict["compared"] == verdict["identical"] == 60 and verdict["differences"] == {}
        audited = await asyncio.to_thread(done_json, settings, "audit")
        assert audited["violations"] == {} and "learned" not in audited["unprovable"]
