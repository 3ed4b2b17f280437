"""The demo, short: a real worker with the real encoder, late bills and rewards; it ends on budget
and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from aiokafka.admin import AIOKafkaAdminClient

ROOT = Path(__file__).parents[2]
REQUESTS = 200
# Of 200 requests, one answer of the dearest model more or less is an eighth of the budget.
LEAST, MOST = 0.7, 1.5


def demo(*options: str, kafka: str) -> subprocess.Popen[str]:
    """Start `pbstream demo` on a broker that goes on."""
    command = [sys.executable, "-m", "commands.cli", "demo", "--json", *options]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "KAFKA_BOOTSTRAP": kafka, "PB_BROKER": "env"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def topics_of_demos(kafka: str) -> set[str]:
    """Return the demos' topics that are on the broker."""
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        return {
            topic["topic"]
            for topic in await admin.describe_topics()
            if topic["topic"].startswith("demo-")
        }
    finally:
        await admin.close()


def test_a_short_demo_answers_every_request_on_budget_and_without_dead_letters(
    kafka: str, tmp_path: Path
) -> None:
    before = asyncio.run(topics_of_demos(kafka))
    with demo("--requests", str(REQUESTS), "--folder", str(tmp_path), kafka=kafka) as process:
        stdout, stderr = process.communicate(timeout=240)
    assert process.returncode == 0, stderr
    figures = json.loads(stdout)
    assert (
        figures["requests"],
        figures["decided"],
        figures["dead_letters"],
        figures["refused"],
    ) == (REQUESTS, REQUESTS, 0, {})
    assert LEAST <= figures["cost_per_budget"] <= MOST
    assert (
        figures["mean_reward"]
        > figures["yardsticks"]["always meta-llama/llama-3.1-8b-instruct"]["reward"]
    )
    assert figures["spend_usd"] == pytest.approx(REQUESTS * figures["mean_cost_usd"], rel=1e-9)
    assert {"demo.html", "demo.json", "worker.log"} <= {file.name for file in tmp_path.iterdir()}
    assert "mean reward" in stderr
    assert "make demo ARGS=" in stderr
    assert asyncio.run(topics_of_demos(kafka)) <= before


def test_a_ramp_ends_with_the_proof_of_what_it_saved(kafka: str, tmp_path: Path) -> None:
    options = ("--ramp", "--requests", "300", "--folder", str(tmp_path))
    with demo(*options, kafka=kafka) as process:
        stdout, stderr = process.communicate(timeout=240)
    assert process.returncode == 0, stderr
    figures, proof = json.loads(stdout), json.loads((tmp_path / "proof.json").read_text())
    whole = proof["figures"]["whole"]
    # All but the hold-out may be routed, and a fifth at least.
    assert 30 < whole["routed"] < 285 and sum(whole["bills"].values()) == 300
    assert whole["cost_usd"]["incumbent"] > 5 * whole["cost_usd"]["router"]
    assert figures["proof"] == proof["says"] and proof["says"] in stderr.replace("\n", " ")
    assert figures["mean_cost_usd"] == pytest.approx(whole["cost_usd"]["router"])
    assert "Share that is routed" in (tmp_path / "demo.html").read_text()


def test_ctrl_c_stops_everything_that_was_started(kafka: str, tmp_path: Path) -> None:
    with demo("--folder", str(tmp_path), kafka=kafka) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("decided "):
                break
        children = psutil.Process(process.pid).children(recursive=True)
        assert any("worker" in child.cmdline() for child in children)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode != 0
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []


def test_a_worker_that_dies_ends_the_demo_with_the_end_of_its_log(
    kafka: str, tmp_path: Path
) -> None:
    with demo("--folder", str(tmp_path), kafka=kafka) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("decided "):
                break
        for child in psutil.Process(process.pid).children(recursive=True):
            if "worker" in child.cmdline():
                child.send_signal(signal.SIGKILL)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the worker ended with code -9" in stderr
