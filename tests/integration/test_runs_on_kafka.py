"""Budgets of a run on a real worker: what is left, who is refused, what a crash and an audit
find."""

import asyncio
import json
from pathlib import Path

from paretobandit_client import Refused, Router
from router_state.runs.runs import Runs
from router_state.state import invariants
from tests.integration.commands import done_json
from tests.integration.service import cost, request, router, running_service
from tests.router_state.core_reference import having

BUDGET, BILL = 0.02, 0.002


async def test_a_run_spends_its_budget_and_is_refused_across_a_crash(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path) as service:
        worker = await service.ready(service.worker())
        home = "acme.agent"
        sessions = {"budget_usd": BUDGET, "when_spent": "refuse"}
        await service.send("routers", router(home, sessions=sessions))
        spent = 0.0
        for n in range(20):
            await service.send("requests", request(home, f"q{n}", seed=n, session_id="run"))
            await service.until(
                lambda n=n: service.route(f"q{n}") or service.dead_letters(), "an answer"
            )
            route = service.route(f"q{n}")
            if route is None:
                break
            left = BUDGET - spent - route["expected_cost_usd"]
            assert abs(route["session_left_usd"] - left) < 1e-9
            await service.send("costs", cost(home, f"q{n}", BILL))
            spent += BILL
            settled = n + 1
            await service.until(
                lambda s=settled: service.lambda_of(home).get("settled") == s, "the bill"
            )
            if n == 1:
                worker.kill()
                worker = await service.ready(service.worker())
        ((letter, _),) = service.dead_letters().values()
        assert letter.reason == "session_spent" and "session_budget_usd" in letter.message
        assert 0.8 * BUDGET <= spent <= BUDGET + BILL
        [alert] = [json.loads(record.value) for record in service.records["alerts"]]
        assert alert["kind"] == "session_budget" and alert["evidence"]["session_id"] == "run"

        settings = service.settings
        async with Router(home, bootstrap=settings.bootstrap, prefix=settings.prefix) as agent:
            context = request(home, "x", seed=1)["context"]
            try:
                await agent.route(context=context, session="run", timeout=60)
                raise AssertionError("the run is over")
            except Refused as refused:
                assert refused.reason == "session_spent"
            more = await agent.route(
                context=context, session="run", session_budget_usd=1.0, timeout=60
            )
            assert more.route is not None and more.route.session_left_usd is not None
            assert 0.9 < more.route.session_left_usd < 1.0 - spent

        engine = await service.engine(home)
        invariants.check(engine.state, engine.records)
        run = having(engine.state, Runs).known.find("run")
        assert run is not None and run.budget_usd == 1.0 and run.warned is False
        verdict = await asyncio.to_thread(done_json, settings, "replay", "--verify", router=home)
        assert verdict["compared"] == verdict["identical"] and verdict["differences"] == {}
        audited = await asyncio.to_thread(done_json, settings, "audit")
        assert audited["violations"] == {} and "learned" not in audited["unprovable"]
