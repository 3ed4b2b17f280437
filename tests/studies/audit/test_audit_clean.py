"""An audit of true topics finds nothing."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from agents.members import exchange_priors
from agents.table import keys
from router_state.packing import framing
from streams.settings import Settings
from studies.audit.run import audit
from studies.history.records import Record
from tests.audit_world import DIMENSIONS, MODELS, World, busy_world, router, talking_world
from tests.memory_topics import MemoryTopics

SETTINGS = Settings(prefix="pb.", app_id="audited", partitions=3)


async def test_busy_service_is_clean() -> None:
    world = await busy_world(SETTINGS)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["decisions"] == 300
    assert findings.checked["routers_recomputed"] == 4


async def test_conversations_outages_times_and_rewards_of_sessions_are_clean() -> None:
    world = await talking_world(SETTINGS)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["decisions"] == 120
    assert findings.checked["routers_recomputed"] == 3
    assert findings.checked["rewards_refused"] == 4


async def test_what_a_period_was_charged_is_proved_when_its_requests_are_forgotten() -> None:
    world = await busy_world(SETTINGS, requests=60)
    for _ in range(8):
        await world.pass_time(86_400.0)
    await world.pass_time(1.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples


async def test_alerts_of_refused_requests_are_clean() -> None:
    world = World(SETTINGS)
    await world.start()
    caps = {"day": {"usd": 0.001, "mode": "hard"}}
    ending = {name: {**one, "retires_at": "2020-01-01"} for name, one in MODELS.items()}
    await world.send("routers", router("home", caps=caps, models=ending))
    await _ask(world, "r-1")
    await world.send("costs", {"router_id": "home", "request_id": "r-1", "cost_usd": 0.01})
    await _ask(world, "r-2")
    # A refused request is the first to find that another model ends.
    ending["new"] = ending["llama"]
    await world.send("routers", router("home", caps=caps, models=ending))
    await _ask(world, "r-3")
    await world.pass_time(1.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.checked["requests_refused"] == 2
    assert findings.as_json()["violations"] == {}, findings.examples


async def test_a_bill_after_its_request_is_forgotten_leaves_the_one_before() -> None:
    settings = Settings(
        prefix="pb.", app_id="audited", partitions=3, orphan_wait=1.0, requests_per_router=1
    )
    world = World(settings)
    await world.start()
    await world.send("routers", router("home"))
    for name in ("r-1", "r-2"):
        await _ask(world, name)
        await world.send("costs", {"router_id": "home", "request_id": name, "cost_usd": 0.01})
        await world.pass_time(1.0)
    await world.send("costs", {"router_id": "home", "request_id": "r-1", "cost_usd": 0.01})
    for _ in range(3):
        await world.pass_time(1.0)
    findings = audit(world.topics(), settings)
    assert findings.checked["costs_refused"] == 1
    assert findings.as_json()["violations"] == {}, findings.examples


async def pooled_world() -> World:
    """Return three routers in two pools, after some traffic."""
    world = World(SETTINGS)
    await world.start()
    await world.send("pools", {"pool_id": "org", "budget": {"usd": 0.05, "per": "hour"}})
    await world.send("pools", {"pool_id": "team", "parent": "org"})
    for name, pool in (("home", "org"), ("a", "team"), ("b", "team")):
        await world.send("routers", router(name, pool=pool))
    for number in range(60):
        name = ("home", "a", "b")[number % 3]
        event = {"router_id": name, "request_id": f"r-{number}"}
        context = [0.1 * (number % 7)] * (DIMENSIONS - 1) + [1.0]
        await world.send("requests", {**event, "context": context})
        await world.send("costs", {**event, "cost_usd": 1e-4 * (1 + number % 5)})
        await world.pass_time(2.0)
    return world


async def test_pools_and_their_members_are_clean() -> None:
    world = await pooled_world()
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["pools"] == 2
    assert findings.checked["leases"] > 10
    assert findings.checked["routers_recomputed"] == 3


async def test_a_pool_that_takes_its_money_back_is_clean_all_the_while() -> None:
    world = await pooled_world()
    await world.send("pools", None, key=b"org")
    for _ in range(30):
        await world.pass_time(2.0)
        findings = audit(world.topics(), SETTINGS)
        assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples


async def test_members_of_a_family_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a newcomer is told comes after its declaration here.
    monkeypatch.setattr(exchange_priors, "WELCOME_SECONDS", 0.01)
    world = World(SETTINGS)
    await world.start()
    names = ("home", "a", "b")
    for name in names:
        await world.send("routers", router(name, family="support", profile="live"))
    for number in range(150):
        event = {"router_id": names[number % 3], "request_id": f"r-{number}"}
        context = [0.1 * (number % 7 - k) for k in range(DIMENSIONS - 1)] + [1.0]
        await world.send("requests", {**event, "context": context})
        await world.send("costs", {**event, "cost_usd": 1e-4 * (1 + number % 5)})
        await world.send("rewards", {**event, "reward": 0.1 * (number % 9), "source": "judge"})
        await world.pass_time(2.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["routers_recomputed"] == 3
    routes = [
        json.loads(record.value or b"")
        for (topic, _), log in world.records.items()
        for record in log
        if topic == "routes"
    ]
    assert sum(" p" in one["applied"]["since"] for one in routes) > 5
    # Without what the family said nobody can tell.
    for (topic, _), log in world.records.items():
        if topic == "kin":
            log.clear()
    assert audit(world.topics(), SETTINGS).as_json()["unprovable"]


async def test_a_lease_that_nobody_lent_is_found() -> None:
    world = await pooled_world()
    for key, log in world.records.items():
        if key[0] == "changelog":
            log[:] = [_without_leases(record) for record in log]
    found = audit(world.topics(), SETTINGS).as_json()["violations"]
    assert found == {"pool_differs": 1}


def _without_leases(record: Record) -> Record:
    """Let the pool have granted less than its members hold."""
    if record.key != keys.key(keys.POOL, "team", "router:a"):
        return record
    piece = framing.loads(record.value or b"")
    piece["grants"] = {number: [0.0, 0.0, 0.0, *one[3:]] for number, one in piece["grants"].items()}
    return replace(record, value=framing.frame(json.dumps(piece).encode()))


async def _ask(world: World, *request_ids: str) -> None:
    for request_id in request_ids:
        await world.send(
            "requests",
            {
                "router_id": "home",
                "request_id": request_id,
                "context": [0.1] * (DIMENSIONS - 1) + [1.0],
            },
        )


async def test_a_router_that_came_again_and_has_decided_less_than_the_one_before_is_clean() -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router("home"))
    await _ask(world, *"abcde")
    await world.send("routers", None, key=b"home")
    await world.send("routers", router("home"))
    await _ask(world, *"fg")
    await world.pass_time(1.0)
    assert audit(world.topics(), SETTINGS).as_json()["violations"] == {}


async def test_decisions_after_the_state_was_read_are_no_violation() -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router("home"))
    await _ask(world, *"abc")
    await world.pass_time(1.0)
    place = ("changelog", world.partition_of("home"))
    state = list(world.records[place])
    await world.send("routers", router("home", budget_usd_per_request=0.5))
    await _ask(world, *"de")
    await world.pass_time(1.0)
    assert (
        audit(MemoryTopics({**world.records, place: state}), SETTINGS).as_json()["violations"] == {}
    )


async def test_a_bill_that_was_refused_after_the_state_was_read_is_no_violation() -> None:
    settings = SETTINGS.model_copy(update={"orphan_wait": 1.0})
    world = World(settings)
    await world.start()
    await world.send("routers", router("home"))
    await _ask(world, "r-1")
    await world.send("costs", {"router_id": "home", "request_id": "unknown", "cost_usd": 0.01})
    place = ("changelog", world.partition_of("home"))
    state = list(world.records[place])
    for _ in range(3):
        await world.pass_time(1.0)
    before = audit(MemoryTopics({**world.records, place: state}), settings)
    assert before.checked["costs_refused"] == 1
    for findings in (before, audit(world.topics(), settings)):
        assert findings.as_json()["violations"] == {}, findings.examples


CACHED = {
    name: {
        **model,
        "cached_input_price_per_m": model["input_price_per_m"] / 10,
        "cache_write_price_per_m": model["input_price_per_m"] * 1.25,
        "offers": {"tools": name != "llama"},
    }
    for name, model in MODELS.items()
}


async def _conversing(profile: str) -> World:
    """Return a service of one router after sessions, cached tokens, failed calls and needs."""
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router("home", models=CACHED, profile=profile, error_reward=0.0))
    for number in range(60):
        request_id, tokens = f"r-{number}", 1500 + 40 * number
        asked: dict[str, Any] = {"input_tokens": tokens}
        if number % 3:
            asked["session_id"] = f"s-{number % 4}"
        if number % 5 == 0:
            asked["needs"] = {"tools": True}
        context = [0.1 * (number % 7 - 3)] * (DIMENSIONS - 1) + [1.0]
        about = {"router_id": "home", "request_id": request_id}
        await world.send("requests", {**about, "context": context, **asked})
        if number % 4 == 1:
            failed = {"status": ("error", "timeout", "rate_limited")[number % 3]}
            other = {"model": "gemini"} if number % 8 == 1 else {}
            lost = {"input_tokens": tokens, "output_tokens": 0, "cached_input_tokens": 9}
            await world.send("costs", {**about, **failed, **other, **lost})
        if number % 12 != 1:
            told = {"input_tokens": tokens, "output_tokens": 80, "revision": 1}
            cached = {"cached_input_tokens": tokens - 300} if number % 2 else {}
            other = {"model": "mistral"} if number % 10 == 7 else {}
            await world.send("costs", {**about, **told, **cached, **other})
            label = {"reward": number % 10 / 10, "source": "judge"}
            await world.send("rewards", {**about, **label})
    await world.pass_time(1.0)
    return world


@pytest.mark.parametrize("profile", ["live", "paper"])
async def test_sessions_with_cached_tokens_failures_and_needs_are_decided_again_equally(
    profile: str,
) -> None:
    world = await _conversing(profile)
    assert not world.records["dlq", world.partition_of("home")]
    found = audit(world.topics(), SETTINGS)
    assert found.violations == {} and found.notes == {}, found.examples
    assert found.checked["decisions"] == 60 and found.checked["routers_recomputed"] == 1


async def test_a_bill_with_other_cached_tokens_than_were_booked_is_found() -> None:
    world = await _conversing("live")
    log = world.records["costs", world.partition_of("home")]
    at = next(k for k, r in enumerate(log) if b'"cached_input_tokens": 1640' in (r.value or b""))
    body = {**json.loads(log[at].value or b""), "cached_input_tokens": 0}
    log[at] = replace(log[at], value=json.dumps(body).encode())
    found = audit(world.topics(), SETTINGS)
    assert {"bill_differs", "spend_differs"} <= found.violations.keys(), found.examples


async def test_cached_tokens_priced_before_another_declaration_are_unprovable() -> None:
    world = await _conversing("live")
    cheaper = {name: {**one, "cached_input_price_per_m": 0.0} for name, one in CACHED.items()}
    await world.send("routers", router("home", models=cheaper, profile="live", error_reward=0.0))
    await world.pass_time(1.0)
    found = audit(world.topics(), SETTINGS)
    assert found.violations == {} and found.notes == {"spend": 1}, found.examples
