"""Every command that a page shows is run as it is written, against a real broker and a real worker.

Each block of each page is run here, or by another test that knows its language, or `NOT_RUN` says
why it is not. A new block that is none of these fails.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.broker.child import spawn
from commands.broker.wire import free_ports
from commands.cli import main
from streams.settings import Settings
from tests.integration.commands import done, variables_of
from tests.integration.forked import programs
from tests.pages import PAGES, ROOT

ELSEWHERE = {
    "json": "tests/integration/test_wire_page.py sends them, and compares the answers",
    "python": "test_cli.py (README), tests/doors/integrations/test_integrate_page.py",
    "install": "tests/release/test_wheel.py",
    "http": "tests/doors/integrations/test_integrate_page.py",
    "http-client": "tests/doors/integrations/test_integrate_page.py",
    "litellm": "tests/doors/integrations/test_integrate_page.py",
    "redis": "tests/house/test_cli_docs.py compares it; tests/integration/test_secured.py sets it",
    "text": "a drawing",
    "yaml": "it is a file of docs/scenarios, which tests/studies/simulate/test_scenario.py reads",
}
"""Languages of blocks, and which test has them."""
NOT_RUN = {
    r"pbstream broker\b": "stays; test_cli.py starts one",
    r"pbstream families (show|export|import) ": "needs 20 rewards; see test_learning_together.py",
    r"pbstream worker( +#.*)?$": "stays; the fixture runs it",
    r"pbstream worker --prefix test\. --port 8081": "stays; test_replay_into.py starts one like it",
    r"pbstream replay .*--into": "needs that worker; test_replay_into.py plays into it",
    r"export PB_PRIORS_PATH": "the fixture's worker has it",
    r"kafka-consumer-groups\.sh": "Kafka's own tool, and it makes a service forget",
    r"kafka-configs\.sh": "Kafka's own tool",
    r"kubectl |helm ": "needs a cluster; tests/house/test_chart.py renders the chart",
    r"pbstream encoder distill": "needs the weights: tests/reference/test_shipped_weights.py",
    r"pbstream .*sentence-transformers:": "needs torch: tests/reference/test_own_model.py",
    r"location /routers/": "nginx's configuration",
    r"95\.6% of |.*[┤└]| +\$0\.00002858": "the picture that watch draws",
    r"partitioner=": "librdkafka's configuration",
}
"""Lines that are not run here, and why."""


def blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a page's blocks in their order: the language, and the lines."""
    text = (ROOT / page).read_text()
    for language, block in re.findall(r"^```([\w-]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield language, block.splitlines()


def excused(line: str) -> bool:
    """Say whether `NOT_RUN` has the line."""
    return any(re.match(pattern, line) for pattern in NOT_RUN)


def commands_of(page: str) -> list[str]:
    """Return a page's commands in their order."""
    lines = [line for language, lines in blocks(page) if language == "sh" for line in lines]
    return [line for line in lines if not excused(line)]


GATEWAY = {f"docs/how-to/{one}.md" for one in ("connect", "http", "litellm", "bills-and-labels")}
"""Pages that need a gateway: tests/doors/integrations/test_integrate_page.py runs them."""
RUN = [page for page in PAGES if commands_of(page) and page not in GATEWAY]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_it_is_said_why_not(page: str) -> None:
    for language, lines in blocks(page):
        if language not in {"sh", *ELSEWHERE}:
            assert [line for line in lines if not excused(line)] == []


def test_most_pages_with_commands_are_run_and_each_excuse_is_needed() -> None:
    lines = [line for page in PAGES for _, lines in blocks(page) for line in lines]
    assert [one for one in NOT_RUN if not any(re.match(one, line) for line in lines)] == []
    assert len(RUN) >= 8
    assert sum(len(commands_of(page)) for page in RUN) > 80


@pytest.fixture
def folder(worker: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with what the pages name: judged prompts, rows, scenarios, priors."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    assert worker.priors_path is not None
    (tmp_path / "priors").symlink_to(worker.priors_path)
    known = {"rewards": {"small": 0.5, "large": 0.9}, "costs": {"small": 0.00003, "large": 0.002}}
    judged = [{"prompt": f"What is {n} plus {n % 7}?", **known} for n in range(60)]
    (tmp_path / "judged.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in judged))
    answers = [(one["prompt"], model) for one in judged for model in known["costs"]]
    rows = (f"{prompt},{m},{known['costs'][m]},{known['rewards'][m]}\n" for prompt, m in answers)
    (tmp_path / "rows.csv").write_text(f"prompt,model,cost,score\n{''.join(rows)}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", RUN)
def test_every_command_of_the_page_works(page: str, worker: Settings, folder: Path) -> None:
    own = re.sub(r"\W", "-", page)
    path = os.pathsep.join(map(str, (programs(), Path(sys.executable).parent, os.environ["PATH"])))
    named = {**variables_of(worker), "PB_ROUTER": own, "PATH": path, "BROWSER": "true"}
    if page in {"docs/how-to/backup.md", "docs/explanation/replay.md"}:
        _live_a_little(worker, own)
    for command in commands_of(page):
        command = command.replace("localhost:8080", f"localhost:{worker.web_port}")
        if re.match(r"pbstream dashboard\b", command):
            _starts_and_stops(command, named, folder)
        else:
            code, said = _ran(command, named)
            assert code == 0, f"{command}\n{said}"


def _live_a_little(worker: Settings, router: str) -> None:
    """Declare the models of docs/scenarios, and decide, pay and judge some requests."""
    names = ["meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512"]
    for name in names:
        priced = ("--input-price", "0.1", "--output-price", "0.4", "--dimensions", "3")
        done(worker, "models", "add", name, *priced, router=router)
    dear = ("google/gemini-2.5-pro", "--input-price", "1.25", "--output-price", "10")
    done(worker, "models", "add", *dear, router=router)
    # Each model once: who was never called can't be played anew.
    for n, name in enumerate([*names, dear[0]]):
        context, only = f"[0.{n}, -0.1, 1.0]", ("--allowed", name)
        done(
            worker,
            "request",
            "--context",
            "-",
            "--id",
            f"q{n}",
            *only,
            stdin=context,
            router=router,
        )
        done(worker, "cost", f"q{n}", "0.0002", router=router)
        done(worker, "reward", f"q{n}", "0.8", router=router)


def _ran(command: str, named: dict[str, str]) -> tuple[int, str]:
    """Run a line: in this process where it is `pbstream` alone, which spares its start, else by
    bash.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "pbstream" and not re.search(r"[|><;&$]", re.sub(r'"[^"]*"', "", command)):
        result = CliRunner().invoke(main, words[1:], env=named)
        return result.exit_code, result.output
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={**os.environ, **named},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


def _starts_and_stops(command: str, named: dict[str, str], folder: Path) -> None:
    """Run a command that stays until it answers, and end it."""
    (port,) = free_ports(1)
    log = folder / "stays.log"
    free = {**os.environ, **named, "PB_DASHBOARD_PORT": str(port)}
    staying = spawn(shlex.split(command), log=log, env=free, cwd=folder)
    try:
        patient = ["--retry", "60", "--retry-delay", "1", "--retry-connrefused"]
        live = f"http://127.0.0.1:{port}/livez"
        subprocess.run(["curl", "-sf", *patient, live], check=True, capture_output=True)
        staying.send_signal(signal.SIGTERM)
        assert staying.wait(60) == 0, log.read_text()
    finally:
        staying.kill()
