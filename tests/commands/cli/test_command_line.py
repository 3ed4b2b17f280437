"""The command line without a broker: help that teaches, errors that say what to do, exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from commands.broker.wire import free_ports
from commands.cli import main
from commands.cli.loading import COMMANDS
from doors.console.failures import Refused, in_a_sentence
from doors.console.session import Session, named
from drawing.numbers import usd
from ground import extras
from paretobandit_streams.__main__ import write_any_character
from streams.log.service_topics import TopicsNotReady
from streams.settings import Settings


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command and group."""
    yield path
    for name in group.list_commands(click.Context(group)):
        command = group.commands[name]
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


EVERY = sorted(commands(main))
NEEDS_BROKER = [
    ["topics", "create"],
    ["topics", "check"],
    ["worker"],
    ["models", "add", "m", "--input-price", "1", "--output-price", "1"],
    ["models", "list"],
    ["budget", "set", "0.001"],
    ["budget", "show"],
    ["routers", "list"],
    ["request", "hello"],
    ["cost", "r-1", "0.001"],
    ["reward", "r-1", "0.5"],
    ["explain", "r-1"],
    ["watch", "--once"],
    ["audit"],
    ["replay", "--verify"],
    ["replay", "--policy", "paper"],
    ["replay", "--into", "test."],
    ["topics", "acls", "--check"],
    ["ingest", "payloads", "--from", "otel"],
    ["dlq", "list"],
    ["dlq", "show", "0:0"],
    ["fit", "--from-history", "nothing"],
    ["snapshot", "export", "nothing.pbs"],
]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Point at a port where nothing listens, whatever the environment says."""
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.setenv("PB_BOOTSTRAP", f"127.0.0.1:{free_ports(1)[0]}")


def run(*words: str, stdin: str | None = None) -> Result:
    """Run one command in this process."""
    return CliRunner().invoke(main, list(words), input=stdin, prog_name="pbstream")


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_of_every_command_explains_itself(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert len(result.output.splitlines()[2].strip()) > 20


@pytest.mark.parametrize("path", [path for path in EVERY if len(path) == 1], ids=" ".join)
def test_help_of_every_first_level_command_has_an_example(path: tuple[str, ...]) -> None:
    assert re.search(
        rf"^ +(\S+=\S+ |echo .* \| )?pbstream {path[0]}\b",
        run(*path, "--help").output,
        re.MULTILINE,
    )


def test_help_needs_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_PARTITIONS", "many")
    assert run("request", "--help").exit_code == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_no_character_ends_a_command_whose_output_a_program_reads(encoding: str) -> None:
    written = io.BytesIO()
    output = io.TextIOWrapper(written, encoding=encoding)
    write_any_character(output)
    output.write("→ 🦙 λ_t")
    output.flush()
    assert written.getvalue().decode() == "→ 🦙 λ_t"


def test_examples_in_the_help_are_valid_commands() -> None:
    for path in EVERY:
        for example in re.findall(
            r"^ +pbstream ((?!\[|demo).*)$", run(*path, "--help").output, re.MULTILINE
        ):
            words = re.findall(r'"[^"]*"|\S+', example.split("#")[0].split("&&")[0])
            command: click.Command = main
            while isinstance(command, click.Group):
                command = command.commands[words.pop(0)]
            known = {option for parameter in command.params for option in parameter.opts} | {
                "--help"
            }
            assert {word for word in words if word.startswith("--")} <= known, example


@pytest.mark.parametrize("words", NEEDS_BROKER, ids=" ".join)
def test_without_a_broker_one_sentence_says_so_and_the_exit_code_is_1(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 1
    lines = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert "127.0.0.1:" in lines[0]
    assert "Traceback" not in result.output and "Unclosed" not in result.output


def test_without_a_broker_the_sentence_names_both_remedies() -> None:
    output = run("request", "hello").output
    assert "pbstream broker" in output
    assert "PB_BOOTSTRAP" in output


def test_a_wrong_setting_exits_with_2_and_shows_a_right_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PB_PARTITIONS", "many")
    result = run("watch", "--once")
    assert result.exit_code == 2
    assert "PB_PARTITIONS=8" in result.output


def test_a_misspelt_setting_is_named_with_the_right_spelling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PB_PARTITION", "4")
    result = run("watch", "--once")
    assert result.exit_code == 2
    assert "did you mean PB_PARTITIONS" in result.output


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        (["request"], None, "give a prompt in quotes"),
        (["request", "a prompt", "--context", "-"], "[1.0]", "give a prompt in quotes"),
        (["request", "--context", "-"], "not json", "not hold a JSON array of numbers"),
        (["request", "--context", "[1.0, x]"], None, "not hold a JSON array of numbers"),
        (["request", "--context", "1.0"], None, "No such file or directory; give a JSON array"),
        (["request", "hi", "--router", "a b"], None, "not a router id"),
        (
            ["models", "add", "", "--input-price", "1", "--output-price", "1"],
            None,
            "'' is not a model name",
        ),
        (["budget", "set", "-1"], None, "dollars, above 0"),
        (["request", "-"], None, "--context -"),
        (["cost", "r-1"], None, "give dollars"),
        (["cost", "r-1", "--input-tokens", "3"], None, "give dollars"),
        (["cost", "r-1", "-0.1"], None, "No such option"),
        (
            ["cost", "r-1", "0", "--input-tokens", "3", "--cached-tokens", "4"],
            None,
            "give fewer",
        ),
        (["cost", "r-1", "0", "--status", "lost"], None, "rate_limited"),
        (["reward", "r-1", "1.5"], None, "0<=x<=1"),
        (["budget", "set", "0"], None, "dollars, above 0"),
        (["budget", "set", "a lot"], None, "dollars, above 0"),
        (["models", "add", "m"], None, "--input-price"),
        (
            ["models", "add", "m", "--input-price", "1", "--output-price", "1", "--n-eff", "3"],
            None,
            "give --prior or --like",
        ),
        (
            [
                "models",
                "add",
                "m",
                "--input-price",
                "1",
                "--output-price",
                "1",
                "--field",
                "offers",
            ],
            None,
            "not FIELD=VALUE",
        ),
        (["demo", "--requests", "5000"], None, "1<=x<=1824"),
        (["demo", "--shock", "earthquake"], None, "price-cut"),
        (["budjet"], None, "No such command 'budjet'. Did you mean budget?"),
        (["families", "list"], None, "There are export, import, join, show."),
    ],
)
def test_wrong_usage_exits_with_2_and_a_hint(
    words: list[str], stdin: str | None, says: str
) -> None:
    result = run(*words, stdin=stdin)
    assert result.exit_code == 2
    assert says in result.output


@pytest.mark.parametrize("path", [path for path in EVERY if path], ids=" ".join)
def test_a_command_that_is_mistyped_is_named(path: tuple[str, ...]) -> None:
    *groups, last = path
    result = run(*groups, f"{last}x")
    assert result.exit_code == 2 and f"Did you mean {last}?" in result.output


@pytest.mark.parametrize("given", ["-", "[0.5, 0.5]", "FILE"])
def test_a_request_that_would_be_refused_is_not_sent(given: str, tmp_path: Path) -> None:
    (tmp_path / "numbers.json").write_text("[0.5, 0.5]")
    where = str(tmp_path / "numbers.json") if given == "FILE" else given
    result = run("request", "--context", where, stdin="[0.5, 0.5]")
    assert result.exit_code == 1
    assert "wrong_context" in result.output
    assert "last one 1.0" in result.output


def test_a_folder_without_priors_is_named(tmp_path: Path) -> None:
    result = run(
        "models", "add", "m", "--input-price", "1", "--output-price", "1", "--prior", str(tmp_path)
    )
    assert result.exit_code == 1
    assert "pbstream fit" in result.output


def test_judgements_that_are_not_there_are_named(tmp_path: Path) -> None:
    result = run("fit", str(tmp_path / "none.jsonl"), str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "none.jsonl" in result.output


@pytest.mark.parametrize("folder", ["judged.jsonl", "judged.jsonl/priors"])
def test_a_folder_of_priors_that_cannot_be_is_refused_before_anything_is_fitted(
    folder: str, tmp_path: Path
) -> None:
    (tmp_path / "judged.jsonl").write_text('{"prompt": "Why?", "rewards": {"small": 0.5}}\n')
    result = run("fit", str(tmp_path / "judged.jsonl"), str(tmp_path / folder))
    assert result.exit_code == 2 and "is a file, or in one" in result.output


def test_a_refusal_carries_reason_explanation_and_remedy() -> None:
    text = Refused(
        "the request", "no_affordable_model", "the cheapest costs more", router_id="chat"
    ).format_message()
    assert text.startswith(
        "the request was refused, no_affordable_model (the cheapest costs more): "
    )
    assert "--max-price" in text and "`pbstream models list --router chat`" in text


def test_a_refusal_for_want_of_money_names_the_router_and_the_pool() -> None:
    text = Refused("the request", "budget_spent", "", router_id="chat").format_message()
    assert "`pbstream budget set --router chat`" in text and "`pbstream pools set`" in text


def test_a_chosen_score_that_no_label_has_is_answered_with_the_names(tmp_path: Path) -> None:
    scores = [{"traceId": "r", "name": name, "value": 1} for name in ("toxic", "correct")]
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    words = ["convert", "--from", "langfuse", str(tmp_path / "scores.json"), "--score"]
    wrong = run(*words, "corect")
    assert wrong.exit_code == 1
    assert "named corect; those that came are named toxic, correct." in " ".join(
        wrong.output.split()
    )
    assert "are named" not in run(*words, "correct").output


def test_missing_topics_are_told_in_one_line() -> None:
    lines = [
        f"topic pb.{name} does not exist: run `pbstream topics create` (or more)"
        for name in ("routers", "costs")
    ]
    sentence = in_a_sentence(
        TopicsNotReady("\n".join([*lines, "topic pb.routes has 3 partitions"]))
    )
    assert sentence is not None
    assert sentence.format_message().splitlines() == [
        "topics pb.routers, pb.costs do not exist: run `pbstream topics create`.",
        "topic pb.routes has 3 partitions",
    ]


def test_a_defect_keeps_its_trace() -> None:
    assert in_a_sentence(ZeroDivisionError("division by zero")) is None


@pytest.mark.parametrize(
    ("variable", "router_id", "option"),
    [
        (None, "default", ""),
        (None, "chat", " --router chat"),
        ("chat", "chat", ""),
        ("chat", "default", " --router default"),
    ],
)
def test_a_command_that_is_to_be_copied_names_the_router_where_it_must(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, router_id: str, option: str
) -> None:
    monkeypatch.delenv("PB_ROUTER", raising=False)
    if variable is not None:
        monkeypatch.setenv("PB_ROUTER", variable)
    assert named(router_id) == option


def test_starting_imports_nothing_that_takes_long() -> None:
    code = (
        "import sys, commands.cli; print(*{'pydantic', 'aiokafka', 'numpy', 'rich', 'faust', "
        "'orjson'} & sys.modules.keys())"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == ""
    )


STOPPED = """
import atexit
from streams.service import lifetime

async def serve(app): ...

lifetime.serve = serve
atexit.register(print, "taken apart")
"""


@pytest.mark.parametrize(
    "end",
    [
        "from commands.cli import main; main(['worker'])",
        "from multiprocessing import Pipe; from commands.crew.member import work\n"
        "from streams.settings import load_settings; work(load_settings(), 'info', Pipe()[0])",
    ],
    ids=["worker", "member"],
)
def test_a_worker_that_has_stopped_ends_without_being_taken_apart(end: str) -> None:
    environment = {**os.environ, "PB_ENCODER_BACKEND": "none"}
    command = [sys.executable, "-c", STOPPED + end]
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert not ended.stdout, ended.stderr


def test_every_command_that_is_listed_is_there() -> None:
    listed = run("--help").output
    for name in COMMANDS:
        assert main.commands[name].name == name
        assert re.search(rf"^  {name} ", listed, re.MULTILINE)
    assert "No such command" in run("nonsense").output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    assert "_PBSTREAM_COMPLETE" in run("completion", shell).output


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that does something."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from leaves(command.commands[name], (*path, name))
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path


SHOWS_NOTHING = {
    **dict.fromkeys(("broker", "worker", "gateway", "dashboard", "ingest"), "stays"),
    "completion": "prints a script",
    "convert": "prints events, a line of JSON each",
    "labels export": "writes the file of a tool",
    "labels import": "says what it has sent",
    "routers schema": "prints a JSON Schema",
    "routers remove": "says that it is done",
}
"""Commands without `--output`, and why."""


@pytest.mark.parametrize("words", [*leaves(main)], ids=" ".join)
def test_what_shows_something_can_show_it_to_programs(words: tuple[str, ...]) -> None:
    shown = run(*words, "--help").output
    assert ("--output [table|json|yaml]" in shown) == (" ".join(words) not in SHOWS_NOTHING)
    assert ("--json" in shown) == ("--output" in shown)


def test_a_certificate_that_kafka_does_not_learn_is_no_login() -> None:
    plain = Settings(ssl_certfile=Path("worker.pem"), ssl_keyfile=Path("worker.key"))
    assert not plain.logs_in
    assert plain.model_copy(update={"security_protocol": "SSL"}).logs_in


def test_commands_and_options_are_completed() -> None:
    found = ShellComplete(main, {}, "pbstream", "_PBSTREAM_COMPLETE")
    assert {item.value for item in found.get_completions([], "re")} == {
        "request",
        "reward",
        "replay",
    }
    assert "--input-price" in {
        item.value for item in found.get_completions(["models", "add"], "--in")
    }


def test_a_principal_is_a_user_unless_it_says_otherwise() -> None:
    assert (
        "--allow-principal User:pb-client"
        in run("topics", "acls", "--role", "client", "--principal", "pb-client").output
    )
    foreign = run("topics", "acls", "--role", "ingest", "--topic", "spans").output
    assert "--operation Read --topic spans" in foreign and "Write --topic pb.dlq" in foreign
    assert "--operation Read --group paretobandit-ingest" in foreign
    assert run("topics", "acls", "--role", "client", "--topic", "spans").exit_code == 2
    assert "--allow-principal Group:all" in run("topics", "acls", "--principal", "Group:all").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reward", "a", "nan"), "reward is not finite"),
        (("reward", "a", "0.5", "--source", ""), "source must have at least 1 character"),
        (("cost", "a", "nan"), "cost_usd is not finite"),
        (("cost", "", "0.1"), "request_id must have at least 1 character"),
    ],
)
def test_an_event_that_the_contract_does_not_allow_is_a_wrong_argument(
    words: tuple[str, ...], said: str
) -> None:
    result = run(*words)
    assert (result.exit_code, said in result.output) == (2, True)


def test_a_port_that_is_taken_is_said_before_kafka_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("broker", "--port", str(port))
    assert result.exit_code == 1 and f"127.0.0.1:{port} is taken" in result.output
    other = re.search(r"`pbstream broker --port (\d+)`", result.output)
    assert other is not None and f"export PB_BOOTSTRAP=127.0.0.1:{other[1]}" in result.output


@pytest.mark.parametrize("command", ["worker", "gateway", "dashboard"])
def test_what_listens_takes_a_port(command: str) -> None:
    assert "--port" in run(command, "--help").output
    assert Session().with_port("web_port", 8081).web_port == 8081
    assert Session().with_port("web_port", None).web_port == Settings().web_port


@pytest.mark.parametrize("command", ["demo", "broker"])
def test_a_command_with_a_broker_of_its_own_names_no_other(command: str) -> None:
    assert "--bootstrap" not in run(command, "--help").output


def test_a_pipe_that_nobody_reads_on_is_no_failure_to_be_told() -> None:
    assert in_a_sentence(BrokenPipeError(32, "Broken pipe")) is None
    told = in_a_sentence(OSError(13, "Permission denied", "x"))
    assert told is not None and "Permission denied" in told.message


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "$0"),
        (2.858e-5, "$0.00002858"),
        (-2.5e-5, "−$0.000025"),
        (1e-6, "$0.000001"),
        (3.21e-8, "$3.21e−8"),
        (0.12345, "$0.1235"),
        (20_000.0, "$20,000.00"),
    ],
)
def test_dollars_are_plain_down_to_a_millionth(amount: float, text: str) -> None:
    assert usd(amount) == text


def test_an_extra_is_installed_by_the_uv_that_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "ground" / "extras.py"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert extras.command("fit") == "uv pip install ./client '.[fit]'"
    (tmp_path / extras.OWN).parent.mkdir(parents=True)
    (tmp_path / extras.OWN).touch()
    assert extras.command("fit") == ".cache/uv/bin/uv pip install ./client '.[fit]'"
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/uv")
    assert extras.command("fit") == "uv pip install ./client '.[fit]'"
