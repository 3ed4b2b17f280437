"""`pbstream doctor` on a real service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from pydantic import SecretStr

from commands.broker.wire import free_ports
from commands.doctor import examine
from commands.finding import Finding
from streams.encoder.projection import Projection
from streams.settings import Settings
from streams.state.redis_contexts import connect
from streams.state.redis_rights import acl
from tests.integration.commands import PRICES, add_two, done, done_json, run


def findings(settings: Settings) -> dict[str, Any]:
    """Return the findings by what they are about; other tests may have left something wrong."""
    result = run(settings, "doctor", "--json")
    found = {one["what"]: one for one in json.loads(result.stdout)}
    wrong = any(one["verdict"] == "wrong" for one in found.values())
    assert result.exit_code == int(wrong), result.output
    return found


def test_a_service_that_runs_is_found_well(worker: Settings) -> None:
    add_two(worker, "doctor.small")
    found = findings(worker)
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
    assert "1 worker;" in found["group"]["found"]
    assert (
        "doctor.small" in found["prompts"]["found"]
        or "routers do not have" in found["prompts"]["found"]
    )
    assert "fine" in run(worker, "doctor").output


def test_what_is_missing_is_named_with_what_to_do(cli_settings: Settings) -> None:
    lost = cli_settings.model_copy(
        update={"prefix": "nobody.", "app_id": "nobody.paretobandit", "web_port": free_ports(1)[0]}
    )
    found = findings(lost)
    assert found["topics"]["verdict"] == "wrong"
    assert "pbstream topics create" in found["topics"]["remedy"]
    assert (found["group"]["verdict"], found["group"]["remedy"]) == ("wrong", "pbstream worker")
    away = cli_settings.model_copy(update={"bootstrap": f"127.0.0.1:{free_ports(1)[0]}"})
    broker = findings(away)["broker"]
    assert (broker["verdict"], "PB_BOOTSTRAP" in broker["remedy"]) == ("wrong", True)


def test_projections_of_routers_are_looked_for(worker: Settings, tmp_path: Path) -> None:
    assert worker.priors_path is not None
    named = worker.priors_path / "doctored"
    rng = np.random.default_rng(1)
    Projection.fit(rng.normal(size=(99, 128)), 6)[0].save(named)
    add = ("models", "add", "small", *PRICES, "--projection", str(named), "--router", "doctor.own")
    done(worker, *add)
    declared = done_json(worker, "routers", "show", "doctor.own")
    assert (declared["dimensions"], declared["projection"]["ref"]) == (7, "doctored")
    assert findings(worker)["projections"]["verdict"] == "fine"
    elsewhere = worker.model_copy(update={"priors_path": tmp_path})
    found = findings(elsewhere)["projections"]
    assert found["verdict"] == "wrong" and "does not exist" in found["found"]
    unset = findings(worker.model_copy(update={"priors_path": None}))["projections"]
    assert (unset["verdict"], "PB_PRIORS_PATH" in unset["found"]) == ("look", True)
    done(worker, "routers", "remove", "--router", "doctor.own", "--yes")


def test_a_pool_that_is_named_and_not_declared_is_wrong(worker: Settings) -> None:
    add_two(worker, "doctor.pooled")
    assert "No pool doctored is declared yet" in done(
        worker, "pools", "join", "doctored", router="doctor.pooled"
    )
    found = findings(worker)["pools"]
    assert found["verdict"] == "wrong" and "doctored of doctor.pooled" in found["found"]
    done(worker, "pools", "set", "doctored", "5", "--per", "day", "--parent", "nowhere")
    found = findings(worker)["pools"]
    assert "nowhere of pool doctored" in found["found"]
    done(worker, "pools", "set", "doctored", "--parent", "none")
    assert "doctor" not in findings(worker)["pools"]["found"]


@pytest.mark.parametrize(
    ("config", "found", "remedy"),
    [
        ({"maxmemory-policy": "allkeys-lru"}, "(maxmemory-policy allkeys-lru)", "noeviction"),
        ({"maxmemory-policy": "volatile-ttl"}, "(maxmemory-policy volatile-ttl)", "noeviction"),
        ({"maxmemory": "1"}, "% full", "CONFIG SET maxmemory"),
    ],
)
async def test_a_redis_that_will_not_keep_contexts_is_warned_of(
    redis_url: str, config: dict[str, str], found: str, remedy: str
) -> None:
    client = connect(redis_url)
    before = {name: str((await client.config_get(name))[name]) for name in config}
    assert (await redis_of(redis_url)).verdict == "fine"
    try:
        for name, value in config.items():
            await client.config_set(name, value)
        said = await redis_of(redis_url)
    finally:
        for name, value in before.items():
            await client.config_set(name, value)
        await client.aclose()
    assert said.verdict == "look" and found in said.found and remedy in said.remedy


async def test_a_redis_whose_user_may_not_ask_for_its_memory_is_fine(redis_url: str) -> None:
    client, user = connect(redis_url), f"doctored-{uuid4().hex}"
    rule = acl(Settings(), user).replace(">PASSWORD", "nopass").split()
    await client.execute_command("ACL", "SETUSER", *rule)
    try:
        said = await redis_of(redis_url.replace("://", f"://{user}:any@"))
    finally:
        await client.execute_command("ACL", "DELUSER", user)
        await client.aclose()
    assert said.verdict == "fine" and "INFO refused" in said.found


async def redis_of(url: str) -> Finding:
    """Return what is said of a Redis; no broker answers."""
    settings = Settings(bootstrap=f"127.0.0.1:{free_ports(1)[0]}", redis_url=SecretStr(url))
    return {one.what: one async for one in examine(settings)}["Redis"]
