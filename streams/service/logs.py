"""Log one line an event, as text or JSON; the libraries' usual messages of a rebalance are no
warnings.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Literal

Form = Literal["text", "json"]

ORDINARY = re.compile(
    r"because it is rebalancing"
    r"|generation id is not +current"
    r"|Group Coordinator Request failed: \[Error 15\]"
    r"|^Timer .* (is overlapping|woke up too late)"
    r"|Failed fetch offsets from .* NotLeaderForPartitionError"
)
"""Messages that the libraries under a worker call a warning or an error, and that come at every
first start, restart and rebalance."""
CHATTY = ("aiokafka", "mode", "faust", "asyncio")
"""The client libraries log requests and answers at level debug: prompts, contexts."""


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
    """Lower ordinary messages to level info; a filter for handlers."""
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
    """Print what the process is and where it answers; with JSON logs this is a line of JSON."""
    if form == "json":
        logging.getLogger("pbstream").info(text)
    else:
        print(text, file=sys.stderr, flush=True)


def say_why(message: str, error: BaseException | None = None) -> None:
    """Log in one JSON line why the process ends, even before logging is set up; with the traceback
    of an unexpected error.
    """
    raised = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("pbstream", logging.ERROR, __file__, 0, message, (), raised)
    print(Json().format(record), file=sys.stderr, flush=True)
