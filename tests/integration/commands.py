"""Commands against the service of a test: run in this process, with the variables that lead
there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from click.testing import CliRunner, Result

from commands.broker.wire import free_ports
from commands.cli import main
from commands.demo.stage import wait_ready
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings
from tests.integration.forked import inherited, start

T = TypeVar("T")
CONTEXT = "[0.3, -0.1, 1.0]"
PATIENCE = 60.0
"""Seconds until a wait fails."""
FIRST_PAUSE, MORE, LONGEST_PAUSE = 0.05, 1.3, 0.5
"""Seconds between the first two looks, the factor of each pause on the one before, and seconds of
the longest: what is looked for needs the processor that a look takes."""
PRICES = ("--input-price", "0.1", "--output-price", "0.4")


def named_apart(bootstrap: str, kind: str, **given: Any) -> Settings:
    """Return the settings of a service with a name and a port of its own, and two partitions: each
    costs the broker five milliseconds a topic.
    """
    name = f"{kind}-{uuid4().hex[:8]}"
    own = {"prefix": f"{name}.", "app_id": name, "partitions": 2, "web_port": free_ports(1)[0]}
    return load_settings(bootstrap=bootstrap, **{**own, **given})


def new_service(bootstrap: str, kind: str, **given: Any) -> Settings:
    """Create the topics of a service of its own, and return its settings."""
    made = named_apart(bootstrap, kind, **given)
    asyncio.run(create_topics(made))
    return made


def variables_of(settings: Settings) -> dict[str, str]:
    """Return the variables that lead to the service."""
    return {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
        "PB_PARTITIONS": str(settings.partitions),
        "PB_WEB_PORT": str(settings.web_port),
        **({} if settings.priors_path is None else {"PB_PRIORS_PATH": str(settings.priors_path)}),
    }


def run(
    settings: Settings, *words: str, stdin: str | None = None, router: str | None = None
) -> Result:
    """Run one command in this process."""
    named = ("--router", router) if router else ()
    return CliRunner().invoke(main, [*words, *named], input=stdin, env=variables_of(settings))


@contextmanager
def running_worker(
    settings: Settings, *, environment: Mapping[str, str], log: Path
) -> Iterator[None]:
    """Run `pbstream worker`, until it is ready and then until the end of the block."""
    given = {**inherited(), **variables_of(settings), **environment}
    process = start(["commands.cli", "worker"], log=log, env=given)
    try:
        wait_ready(process, settings.web_port, log)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def done(
    settings: Settings, *words: str, stdin: str | None = None, router: str | None = None
) -> str:
    """Run a command that must succeed, and return what it prints."""
    result = run(settings, *words, stdin=stdin, router=router)
    assert result.exit_code == 0, result.output
    return result.stdout


def until(condition: Callable[[], T | None], what: str = "what a test looks for") -> T:
    """Ask again until a condition holds, which takes the workers a while, but not for ever; return
    what it found.
    """
    deadline, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(pause)
        pause = min(MORE * pause, LONGEST_PAUSE)
    return found


def done_json(
    settings: Settings, *words: str, stdin: str | None = None, router: str | None = None
) -> Any:
    """Run a command that must succeed with --json."""
    return json.loads(done(settings, *words, "--json", stdin=stdin, router=router))


def add_two(settings: Settings, router: str) -> None:
    """Declare a router of three dimensions with two models."""
    done(settings, "models", "add", "small", *PRICES, "--dimensions", "3", router=router)
    done(
        settings,
        "models",
        "add",
        "large",
        "--input-price",
        "1.25",
        "--output-price",
        "10",
        router=router,
    )
