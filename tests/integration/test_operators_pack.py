"""What dashboards and rules name is on a running worker's /metrics, with those labels, and the
rules do what they say.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from commands.broker.wire import free_ports
from tests.integration.service import (
    PATIENCE,
    RunningService,
    cost,
    request,
    reward,
    router,
    running_service,
)

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus"
RULE_FILES = [RULES / "recording.yaml", RULES / "alerts.yaml"]
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
SELECTOR = re.compile(r"\b((?:pb|process|python|job:pb)_[a-z0-9_:]+)(\{[^}]*\})?")
BY_PROMETHEUS = {"job", "instance", "le"}
ROUTERS = "10"
RUNBOOKS = "docs/reference/alerts.md"

Labels = dict[str, set[str]]


def promtool(*arguments: str, stdin: str | None = None) -> None:
    """Run promtool, and fail with what it says."""
    if shutil.which("promtool") is None:
        pytest.fail("promtool is missing: apt-get install prometheus", pytrace=False)
    ran = subprocess.run(
        ["promtool", *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def rules() -> list[dict[str, Any]]:
    return [
        rule
        for path in RULE_FILES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


def expressions() -> dict[str, str]:
    """Return every expression of rules and dashboards, with the labels that legends name, by where
    it stands.
    """
    found = {str(rule.get("alert", rule.get("record"))): rule["expr"] for rule in rules()}
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                found[f"{path.stem}: {panel['title']} {target['refId']}"] = (
                    target["expr"] + " " + target["legendFormat"]
                )
    return found


def named_labels(expression: str) -> set[str]:
    """Return the labels that an expression groups by, matches or shows."""
    grouped = ",".join(re.findall(r"by \(([^)]*)\)", expression)).replace(" ", "").split(",")
    matched = [
        name
        for _, braces in SELECTOR.findall(expression)
        for name in re.findall(r"(\w+) *[=!]", braces)
    ]
    shown = re.findall(r"\{\{ *(\w+) *\}\}", expression)
    return {name for name in (*grouped, *matched, *shown) if name}


async def scrape(port: int) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        return await answer.text()


def labels_by_name(text: str) -> Labels:
    found: Labels = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def series(text: str, *names: str) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in names
    }


async def ask_until_planned(service: RunningService) -> None:
    """Send requests to a router with a verifier until a decision has a plan of two calls."""
    verifiers = {"tests": {"usd": 0, "exact": True}}
    await service.send("routers", router("planner", verifiers=verifiers))
    for number in range(300):
        name = f"planned-{number}"
        await service.send("requests", request("planner", name, seed=number))
        await service.until(lambda name=name: service.route(name), "a decision")
        if len((service.route(name) or {}).get("plan") or ()) > 1:
            return
        await service.send("rewards", reward("planner", name, number % 2))
    raise AssertionError("no request has a plan")


async def tell_family(service: RunningService, port: int) -> None:
    """Let a member that asks for labels tell its family of them, until their metrics are there."""
    labels = {"want": 20, "per": "day"}
    await service.send("routers", router("kin", family="support", labels=labels))
    for number in range(30):
        await service.send("requests", request("kin", f"kin-{number}", seed=number))
        await service.send("rewards", reward("kin", f"kin-{number}", number % 2))
    async with asyncio.timeout(PATIENCE):
        while "pb_family_apart{" not in await scrape(port):
            await service.poll()


async def test_everything_that_rules_and_dashboards_name_is_on_a_running_worker(
    kafka: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    own = {"PB_WEB_PORT": str(port), "PB_METRICS_ROUTERS": ROUTERS}
    async with running_service(kafka, tmp_path, partitions=2, **own) as service:
        await service.ready(service.worker())
        at_first = await scrape(port)
        await service.send("pools", {"pool_id": "shop", "budget": {"usd": 10.0, "per": "day"}})
        budget = {"usd": 10.0, "per": "month"}
        more: dict[str, Any] = {
            "sources": {"gold": "human", "judges": ["judge"]},
            "verifiers": {"tests": {"usd": 0, "exact": True}},
        }
        await service.send("routers", router("home", budget=budget, pool="shop", **more))
        await service.send("requests", request("home", "r-1"))
        await service.send("requests", request("nowhere", "r-2"))
        await service.send("costs", cost("home", "r-1", 0.001))
        await service.send("rewards", reward("home", "r-1", 0.5))
        await service.until(
            lambda: service.lambda_of("home").get("rewards_applied") == 1, "the reward"
        )
        for n in range(8):
            await service.send("requests", request("home", f"judged-{n}"))
            verdict = {"router_id": "home", "request_id": f"judged-{n}", "verifier": "tests"}
            await service.send("rewards", verdict | {"verdict": n % 2})
            for source, value in (("human", n % 2), ("judge", n % 3 / 2)):
                await service.send("rewards", reward("home", f"judged-{n}", value, source=source))
        await service.until(
            lambda: service.lambda_of("home")["sources"][1]["pairs"] == 8, "the pairs of labels"
        )
        await ask_until_planned(service)
        await tell_family(service, port)
        await service.until(service.reasons, "the dead letter")
        await service.until(
            lambda: len(service.lambda_of("home").get("budgets", ())) == 2, "a lease of the pool"
        )
        text = await scrape(port)

    live = labels_by_name(text)
    recorded = {rule["record"]: named_labels(rule["expr"]) for rule in rules() if "record" in rule}
    for where, expression in expressions().items():
        names = {name for name, _ in SELECTOR.findall(expression)}
        assert names or "up{" in expression, where
        assert names <= live.keys() | recorded.keys(), where
        known = BY_PROMETHEUS.union(*(live.get(name, recorded.get(name, set())) for name in names))
        assert named_labels(expression) <= known, where

    counters = (
        "pb_outcomes_total",
        "pb_dead_letters_total",
        "pb_events_total",
        "pb_retries_total",
        "pb_event_seconds_count",
    )
    assert series(at_first, *counters) == series(text, *counters)
    topics = {
        dict(labels)["topic"]
        for _, labels in series(
            text, "pb_committed_offset", "pb_dead_letters_total", "pb_events_total"
        )
    }
    assert topics == {"routers", "requests", "costs", "rewards", "pools", "leases", "kin"}
    assert (
        len(series(at_first, "pb_committed_offset"))
        == len(series(at_first, "pb_end_offset"))
        == 2 * len(topics)
    )
    promtool("check", "metrics", stdin=text)


def test_rules_are_valid_and_raise_what_they_should() -> None:
    promtool("check", "config", str(RULES / "prometheus.yml"))
    promtool("check", "rules", *map(str, RULE_FILES))
    promtool("test", "rules", str(RULES / "rules_test.yaml"))


def test_every_alert_is_tested_and_has_a_runbook() -> None:
    tested = {
        case["alertname"]
        for test in yaml.safe_load((RULES / "rules_test.yaml").read_text())["tests"]
        for case in test["alert_rule_test"]
    }
    anchors = {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in (ROOT / RUNBOOKS).read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    }
    for alert in (rule for rule in rules() if "alert" in rule):
        page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
        assert alert["alert"] in tested
        assert page == RUNBOOKS
        assert anchor in anchors, alert["alert"]


def test_dashboards_have_an_id_each_and_panels_that_do_not_overlap() -> None:
    boards = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert len({board["uid"] for board in boards}) == len(boards) == 2
    for board in boards:
        taken: set[tuple[int, int]] = set()
        for at in (panel["gridPos"] for panel in board["panels"]):
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken
            assert max(x for x, _ in cells) < 24
            taken |= cells
