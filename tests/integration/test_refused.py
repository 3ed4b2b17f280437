"""What workers refuse is in force nowhere: every command says why, and the next declaration
replaces it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import orjson
import pytest
import yaml
from aiokafka import AIOKafkaProducer

from ground.json_values import Document
from streams.settings import Settings
from tests.integration.commands import (
    CONTEXT,
    PRICES,
    done,
    done_json,
    new_service,
    run,
    running_worker,
    until,
)

MODEL = {"input_price_per_m": 0.1, "output_price_per_m": 0.4}
NOWHERE = {**MODEL, "prior": {"ref": "nowhere", "sha256": "0" * 64}}


def file_of(tmp_path: Path, router: str, **model: object) -> str:
    """Write a declaration of three dimensions with one model."""
    path = tmp_path / "router.yaml"
    document = {"router_id": router, "dimensions": 3, "models": {"small": {**MODEL, **model}}}
    path.write_text(yaml.safe_dump(document))
    return str(path)


def row_of(worker: Settings, router: str) -> Document:
    rows = done_json(worker, "routers", "list")
    found: Document = {row["router_id"]: row for row in rows}[router]
    return found


def test_a_new_router_that_was_refused_is_said_to_be_and_the_next_declaration_replaces_it(
    worker: Settings, home: str, tmp_path: Path
) -> None:
    bad = run(worker, "routers", "apply", file_of(tmp_path, home, prior=NOWHERE["prior"]))
    assert bad.exit_code == 1 and "wrong_prior" in bad.output
    row = row_of(worker, home)
    assert (row["status"], row["models"]) == ("refused", None)
    assert row["refused"]["reason"] == "wrong_prior"
    listed = done(worker, "routers", "list")
    assert "refused, wrong_prior" in listed and "The next declaration replaces it" in listed
    for words in (
        ("routers", "show", home),
        ("models", "list", "--router", home),
        ("models", "remove", "small", "--router", home),
        ("budget", "set", "0.001", "--router", home),
        ("budget", "show", "--router", home),
        ("cost", "r-1", "0.1", "--router", home),
        ("watch", "--once", "--router", home),
    ):
        said = run(worker, *words)
        assert said.exit_code == 1 and "was refused, wrong_prior" in said.output, words
    asked = run(worker, "request", "--context", "-", stdin=CONTEXT, router=home)
    assert asked.exit_code == 1 and "unknown_router: the declaration of" in asked.output
    assert "was refused, wrong_prior" in asked.output
    found = {one["what"]: one for one in json.loads(run(worker, "doctor", "--json").stdout)}
    assert found["routers"]["verdict"] == "wrong" and home in found["routers"]["found"]
    assert run(worker, "doctor").exit_code == 1
    # Mended, the same command works; nothing is stale and nothing is there already.
    done(worker, "models", "add", "small", *PRICES, "--dimensions", "3", router=home)
    row = row_of(worker, home)
    assert (row["status"], row["models"], row["note"]) == ("in_force", 1, None)
    done(worker, "request", "--context", "-", stdin=CONTEXT, router=home)


def test_a_refused_router_can_be_let_go(worker: Settings, home: str, tmp_path: Path) -> None:
    bad = run(worker, "routers", "apply", file_of(tmp_path, home, prior=NOWHERE["prior"]))
    assert bad.exit_code == 1 and row_of(worker, home)["status"] == "refused"
    done(worker, "routers", "remove", "--yes", router=home)
    assert home not in [row["router_id"] for row in done_json(worker, "routers", "list")]
    gone = run(worker, "routers", "show", home)
    assert gone.exit_code == 1 and "is not declared" in gone.output


def test_a_refused_change_leaves_what_is_in_force_and_is_said_until_it_is_replaced(
    worker: Settings, home: str, tmp_path: Path
) -> None:
    done(worker, "models", "add", "small", *PRICES, "--dimensions", "3", router=home)
    in_force = done_json(worker, "routers", "show", home)
    bad = run(worker, "routers", "apply", file_of(tmp_path, home, prior=NOWHERE["prior"]))
    assert bad.exit_code == 1 and "wrong_prior" in bad.output
    row = row_of(worker, home)
    assert (row["status"], row["models"]) == ("refused", 1)
    shown = run(worker, "routers", "show", home, "--json")
    assert shown.exit_code == 0 and json.loads(shown.stdout) == in_force
    assert "refused, wrong_prior" in shown.stderr
    # To apply what is in force replaces what was refused, though no field changes.
    done(worker, "routers", "apply", file_of(tmp_path, home))
    assert row_of(worker, home)["status"] == "in_force"
    assert "Nothing changes" in done(worker, "routers", "apply", file_of(tmp_path, home))
    done(worker, "budget", "set", "0.001", router=home)


async def test_a_declaration_that_no_command_would_write_is_said_to_be_refused(
    worker: Settings, home: str
) -> None:
    wrong = {"router_id": home, "models": {"small": {"input_price_per_m": "dear"}}}
    async with AIOKafkaProducer(bootstrap_servers=worker.bootstrap) as producer:
        for value in (b"{", orjson.dumps(wrong)):
            await producer.send_and_wait(worker.topic("routers"), value, key=home.encode())

    def refused() -> bool:
        return row_of(worker, home)["status"] == "refused"

    await asyncio.to_thread(until, refused)
    add = ("models", "add", "small", *PRICES, "--dimensions", "3")
    await asyncio.to_thread(done, worker, *add, router=home)
    assert (await asyncio.to_thread(row_of, worker, home))["status"] == "in_force"


@pytest.fixture
def quiet(kafka: str) -> Settings:
    """Return the settings of a service with topics, whose worker does not run yet."""
    return new_service(kafka, "quiet")


def test_what_is_declared_before_a_worker_runs_waits_and_is_taken_up_in_order(
    quiet: Settings, home: str, tmp_path: Path
) -> None:
    short = ("--timeout", "0.5")
    add = run(quiet, "models", "add", "small", *PRICES, "--dimensions", "3", *short, router=home)
    assert add.exit_code == 1 and "pbstream worker" in add.output
    assert row_of(quiet, home)["status"] == "waiting"
    for words in (("routers", "show", home), ("models", "list", "--router", home)):
        said = run(quiet, *words)
        assert said.exit_code == 1 and "waits for a worker" in said.output
    for change in (("models", "add", "large", *PRICES), ("budget", "set", "0.001")):
        assert run(quiet, *change, *short, router=home).exit_code == 1
    with running_worker(quiet, environment={"PB_ENCODER_BACKEND": "none"}, log=tmp_path / "log"):
        until(lambda: row_of(quiet, home)["status"] == "in_force")
        row = row_of(quiet, home)
        assert (row["models"], row["budget_usd_per_request"]) == (2, 0.001)
        assert done_json(quiet, "dlq", "list") == []
    # Stopped again: a removal waits as well, and the router is in force until it is read.
    done(quiet, "routers", "remove", "--yes", router=home)
    assert row_of(quiet, home)["status"] == "leaving"
    assert done_json(quiet, "routers", "show", home)["models"].keys() == {"small", "large"}


def test_a_prior_of_another_projection_than_the_router_has_joins_no_router(
    worker: Settings, home: str, tmp_path: Path
) -> None:
    known = {"rewards": {"small": 0.5, "large": 0.9}, "costs": {"small": 0.00003, "large": 0.002}}
    lines = [{"prompt": f"What is {n} plus {n % 7}?", **known} for n in range(40)]
    (tmp_path / "judged.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert worker.priors_path is not None
    fitted = str(worker.priors_path / "elsewhere")
    done(worker, "fit", str(tmp_path / "judged.jsonl"), fitted)
    # A router without a projection has the workers' own, of as many dimensions.
    done(worker, "models", "add", "small", *PRICES, router=home)
    wrong = run(worker, "models", "add", "large", *PRICES, "--prior", fitted, router=home)
    assert wrong.exit_code == 1 and "fitted with another projection" in wrong.output
    done(worker, "models", "add", "large", *PRICES, "--prior", fitted, router=f"{home[:30]}.new")
