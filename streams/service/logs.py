"""Log one line an event: text for people, JSON for machines; what is ordinary in a group of workers
is no warning.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Literal

Form = Literal["text", "json"]

#: Messages that the libraries under a worker call a warning or an error, and that come at every
#: first start, restart and rebalance.
ORDINARY = re.compile(
    r"because it is rebalancing"
    r"|generation id is not +current"
    r"|Group Coordinator Request failed: \[Error 15\]"
    r"|^Timer .* (is overlapping|woke up too late)"
    r"|Failed fetch offsets from .* NotLeaderForPartitionError"
)
#: The client libraries log requests and answers at level debug: prompts, contexts.
CHATTY = ("aiokafka", "mode", "faust", "asyncio")


class Text(logging.Formatter):
    """Write every record as one line for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s level=%(levelname)s logger=%(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", " | ")


class Json(logging.Formatter):
    """Write every record as one JSON object: `time`, `level`, `logger`, `message`, and `error` with
    its traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def demote(record: logging.LogRecord) -> bool:
    """Let what is ordinary pass as information only; for a handler's filters."""
    if record.levelno >= logging.WARNING and ORDINARY.search(record.getMessage()):
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Leave out the libraries' information, and the framework's reports about its own parts
    starting and stopping.
    """
    own = record.name.partition(".")[0] not in CHATTY and not record.getMessage().startswith("[^")
    return own or record.levelno >= logging.WARNING


def log_to_stderr(level: str, form: Form) -> None:
    """Log to stderr; `level` is debug, info, warning or error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if form == "json" else Text())
    handler.addFilter(demote)
    handler.setLevel(level.upper())
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.INFO if level == "debug" else logging.WARNING)
    if level != "debug":
        handler.addFilter(_worth_a_line)
    logging.basicConfig(level=level.upper(), handlers=[handler])


def announce(text: str, form: Form) -> None:
    """Say to who started the process what it is and where it answers; in a log of JSON that is a
    line of it.
    """
    if form == "json":
        logging.getLogger("pbstream").info(text)
    else:
        print(text, file=sys.stderr, flush=True)


def say_why(message: str, error: BaseException | None = None) -> None:
    """Say in one JSON line why the process ends, whether or not logging was set up; with the
    traceback of what nobody expected.
    """
    raised = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("pbstream", logging.ERROR, __file__, 0, message, (), raised)
    print(Json().format(record), file=sys.stderr, flush=True)
