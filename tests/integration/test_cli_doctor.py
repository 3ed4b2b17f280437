"""`pbstream doctor` and `top` on a real service."""

from __future__ import annotations

import json
from typing import Any

from streams.broker.wire import free_ports
from streams.settings import Settings
from tests.integration.commands import CONTEXT, add_two, done, done_json, run


def findings(settings: Settings, *, code: int) -> dict[str, Any]:
    result = run(settings, "doctor", "--json")
    assert result.exit_code == code, result.output
    return {one["what"]: one for one in json.loads(result.stdout)}


def test_a_service_that_runs_is_found_well(worker: Settings) -> None:
    add_two(worker, "doctor.small")
    found = findings(worker, code=0)
    for what in (
        "versions",
        "codecs",
        "encoder",
        "Redis",
        "broker",
        "topics",
        "group",
        "worker here",
        "clocks",
    ):
        assert found[what]["verdict"] in ("fine", "look"), found[what]
    assert found["group"]["verdict"] == "look"  # another PB_APP_ID than the prefix gives
    assert "1 workers" in found["group"]["found"]
    assert (
        "doctor.small" in found["prompts"]["found"]
        or "routers do not have" in found["prompts"]["found"]
    )
    assert "fine" in done(worker, "doctor")


def test_what_is_missing_is_named_with_what_to_do(cli_settings: Settings) -> None:
    lost = cli_settings.model_copy(
        update={"prefix": "nobody.", "app_id": "nobody.paretobandit", "web_port": free_ports(1)[0]}
    )
    found = findings(lost, code=1)
    assert found["topics"]["verdict"] == "wrong"
    assert "pbstream topics create" in found["topics"]["remedy"]
    assert (found["group"]["verdict"], found["group"]["remedy"]) == ("wrong", "pbstream worker")
    away = cli_settings.model_copy(update={"bootstrap": f"127.0.0.1:{free_ports(1)[0]}"})
    broker = findings(away, code=1)["broker"]
    assert (broker["verdict"], "PB_BOOTSTRAP" in broker["remedy"]) == ("wrong", True)


def test_top_shows_every_router_and_sorts_them(worker: Settings) -> None:
    for router in ("top.a", "top.b"):
        add_two(worker, router)
    for number in range(3):
        done(
            worker,
            "request",
            "--context",
            "-",
            "--id",
            f"q-{number}",
            stdin=CONTEXT,
            router="top.b",
        )
    done(worker, "cost", "q-0", "0.5", router="top.b")
    rows = {row["router_id"]: row for row in done_json(worker, "top", "--once", "--rows", "1000")}
    assert (rows["top.b"]["decided"], rows["top.b"]["spend_usd"], rows["top.b"]["in_flight"]) == (
        3,
        0.5,
        2,
    )
    assert rows["top.a"]["decided"] == 0
    assert (
        done_json(worker, "top", "--once", "--sort", "spend", "--rows", "1")[0]["router_id"]
        == "top.b"
    )
    assert "the first 1 by spend" in done(worker, "top", "--once", "--sort", "spend", "--rows", "1")
