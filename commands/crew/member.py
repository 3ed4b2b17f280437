"""One worker process of a crew: it reports its address, and ends with its crew."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection

from doors.console.failures import in_a_sentence
from streams.settings import Settings

PROCESSES = multiprocessing.get_context("spawn")
"""Context that starts a new interpreter: a fork would inherit an event loop and threads."""


class Member:
    """A place in the crew: its present process, and the ones before.

    Attributes:
        address: address of /readyz and /metrics; None until the process serves them.
        was_up: whether any process of this place has ever served.
    """

    def __init__(self, number: int, settings: Settings, log_level: str) -> None:
        self.number = number
        self.address: str | None = None
        self.was_up = False
        self._arguments = settings, log_level

    def start(self) -> None:
        """Start a process."""
        self._pipe, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=work, args=(*self._arguments, theirs))
        self._process.start()
        # The child has its own copy; only when this one is closed does the child's end show as EOF.
        theirs.close()
        self.address = None
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._read_address)

    @property
    def pid(self) -> int | None:
        """Return the id of the process."""
        return self._process.pid

    async def ended(self) -> int:
        """Wait until the process has ended, and return its status, −n where signal n ended it."""
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.sentinel, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        self.address = None
        loop.remove_reader(self._pipe.fileno())
        self._pipe.close()
        return self._process.exitcode or 0

    def stop(self, *, at_once: bool = False) -> None:
        """Ask the process to end in order, or end it."""
        if self._process.is_alive():
            (self._process.kill if at_once else self._process.terminate)()

    def _read_address(self) -> None:
        try:
            self.address = self._pipe.recv()
            self.was_up = True
        except EOFError:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())


def work(settings: Settings, log_level: str, crew: Connection) -> None:
    """Run a worker until SIGTERM, or until its crew is gone."""
    from ground.boundary import Attempt, exit_at_once
    from streams.service.lifetime import run, serve
    from streams.service.logs import log_to_stderr, say_why
    from streams.service.worker import build_worker

    log_to_stderr(log_level, settings.log_format)

    async def member() -> None:
        # Nothing is ever written here: it becomes readable once the crew's process has ended.
        loop = asyncio.get_running_loop()
        loop.add_reader(crew.fileno(), lambda: os.kill(os.getpid(), signal.SIGTERM))
        app = build_worker(settings)
        app.announce = lambda address: crew.send(address.removesuffix("/readyz"))
        await serve(app)
        loop.remove_reader(crew.fileno())

    with Attempt() as done:
        run(member())
    if done.error is not None:
        if (known := in_a_sentence(done.error)) is None:
            raise done.error
        if settings.log_format == "json":
            say_why(known.format_message())
        else:
            known.show()
        sys.exit(known.exit_code)
    exit_at_once(0)  # as a worker that runs alone does
