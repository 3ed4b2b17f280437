"""A log line is one line, readable by whom it is for, and what is ordinary is no warning."""

import json
import logging
import sys

import pytest
from click.testing import CliRunner

from commands.cli import main
from streams.service.logs import Json, Text, demote


def record(
    message: str, *args: object, level: int = logging.WARNING, name: str = "aiokafka.consumer"
) -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, message, args, None)


def failed() -> logging.LogRecord:
    try:
        raise ValueError("first line\nsecond line")
    except ValueError:
        return logging.LogRecord(
            "streams", logging.ERROR, __file__, 1, "it failed", (), sys.exc_info()
        )


def test_json_line_is_one_object_with_the_traceback_in_it() -> None:
    line = Json().format(failed())
    assert "\n" not in line
    read = json.loads(line)
    assert (read["level"], read["logger"], read["message"]) == ("error", "streams", "it failed")
    assert "second line" in read["error"]
    assert read["time"].endswith("Z")


def test_text_line_is_one_line() -> None:
    assert "\n" not in Text().format(failed())


@pytest.mark.parametrize(
    "message",
    [
        "Heartbeat failed for group paretobandit because it is rebalancing",
        "Group Coordinator Request failed: [Error 15] GroupCoordinatorNotAvailableError",
        (
            "Timer faust.transport.consumer.Consumer._commit_handler is overlapping "
            "(interval=0.2 runtime=1.0)"
        ),
    ],
)
def test_ordinary_rebalances_are_no_warnings(message: str) -> None:
    ordinary = record(message)
    assert demote(ordinary)
    assert ordinary.levelname == "INFO"


def test_what_is_not_ordinary_stays_what_it_is() -> None:
    denied = record(
        "Group Coordinator Request failed: [Error 30] GroupAuthorizationFailedError",
        level=logging.ERROR,
    )
    assert demote(denied)
    assert denied.levelname == "ERROR"


@pytest.mark.parametrize("command", ["worker", "gateway", "dashboard"])
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PB_PARTITIONS": "many"}, "PB_PARTITIONS"),
        ({"PB_APP_ID": "no such name\n", "PB_BOOTSTRAP": ""}, "PB_BOOTSTRAP"),
    ],
)
def test_what_cannot_start_says_why_in_one_line_of_its_log(
    command: str, environment: dict[str, str], said: str
) -> None:
    told = CliRunner().invoke(main, [command], env={"PB_LOG_FORMAT": "json", **environment})
    assert told.exit_code == 2
    (line,) = told.stderr.splitlines()
    read = json.loads(line)
    assert read["level"] == "error" and said in read["message"]


def test_a_wrong_option_of_what_stays_is_a_line_of_its_log_and_help_is_text() -> None:
    environment = {"PB_LOG_FORMAT": "json"}
    wrong = CliRunner().invoke(main, ["worker", "--processes", "none"], env=environment)
    assert wrong.exit_code == 2 and "--processes" in json.loads(wrong.stderr)["message"]
    helped = CliRunner().invoke(main, ["worker", "--help"], env=environment)
    assert helped.exit_code == 0 and "Usage" in helped.stdout
