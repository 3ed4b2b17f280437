"""Run the studies that pages start: one at a time, each in its own process. The last results are
kept.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

import orjson
from pydantic import ValidationError

from doors.gateway.problems import Problem
from ground.json_values import Document
from streams.settings import Settings
from studies.simulate.scenario import Scenario

log = logging.getLogger(__name__)
KEPT = 24
"""Most studies that are kept; the oldest goes first."""
LONGEST_SECONDS = 1800.0
"""Seconds after which a study is ended; its page says so."""
LINE_BYTES = 16 * 2**20
"""Largest result of a study, as one line of JSON."""
KINDS = ("what_if", "frontier", "kinds", "proof")
"""Studies that a page may ask for, see `study_child`."""


@dataclass(slots=True)
class Study:
    """One study.

    Attributes:
        status: running, done, failed or cancelled.
    """

    number: int
    router_id: str
    kind: str
    name: str
    began: float
    status: str = "running"
    progress: Document = field(default_factory=dict)
    result: object = None
    error: str | None = None
    task: asyncio.Task[None] | None = None

    def shown(self, *, whole: bool) -> Document:
        """Return the study for a page."""
        names = ("number", "router_id", "kind", "name", "began", "status", "progress", "error")
        brief = {name: getattr(self, name) for name in names}
        return {**brief, "result": self.result} if whole else brief


class Studies:
    """The studies of one dashboard."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._numbers = itertools.count(1)
        self._studies: OrderedDict[int, Study] = OrderedDict()

    def start(
        self, router_id: str, asked: Document, *, decided: int | None, budget: float | None
    ) -> Study:
        """Start a study. Raises Problem if another one runs, or the scenario is not valid.

        Args:
            asked: `kind`, `since` (seconds since the epoch; absent: all), `scenario`.
            decided: expected number of decisions.
            budget: the router's budget per request in dollars, or its mean cost.
        """
        # One at a time: a study uses a core for minutes, and reads the history from Kafka.
        if any(one.status == "running" for one in self._studies.values()):
            raise Problem("rate_limited", "another study is running; wait for it or cancel it")
        job = _job(asked) | {
            "router_id": router_id,
            "expected": decided,
            "budget_usd": budget,
            "settings": {
                "bootstrap": self._settings.bootstrap,
                "prefix": self._settings.prefix,
                "app_id": self._settings.app_id,
            },
        }
        if job["kind"] == "frontier" and not budget:
            raise Problem("invalid_field", "without a budget or a bill there is nothing to vary")
        name = (job["scenario"] or {}).get("name") or job["kind"].replace("_", " ")
        study = Study(next(self._numbers), router_id, job["kind"], name, time.time())
        self._studies[study.number] = study
        while len(self._studies) > KEPT:
            self._studies.popitem(last=False)
        study.task = asyncio.create_task(self._run(study, orjson.dumps(job)))
        return study

    def of(self, router_id: str) -> list[Study]:
        """Return a router's studies, the newest first."""
        return [one for one in reversed(self._studies.values()) if one.router_id == router_id]

    def get(self, router_id: str, number: int) -> Study:
        """Return a study. Raises Problem."""
        found = self._studies.get(number)
        if found is None or found.router_id != router_id:
            raise Problem("not_found", "this study is not kept (any more)")
        return found

    async def cancel(self, study: Study) -> None:
        """End a study, if it runs."""
        if study.task is not None:
            study.task.cancel()
            with suppress(asyncio.CancelledError):
                await study.task
        # A task that is cancelled before its first step never runs.
        if study.status == "running":
            study.status = "cancelled"

    async def stop(self) -> None:
        """End whatever runs."""
        for study in self._studies.values():
            await self.cancel(study)

    async def _run(self, study: Study, job: bytes) -> None:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                code = await _listen(study, job)
        except asyncio.CancelledError:
            study.status = "cancelled"
            raise
        except (OSError, ValueError, TimeoutError) as error:
            study.error = f"the study ended: {error or 'it took too long'}"
        else:
            if study.result is None and study.error is None:
                study.error = f"its process ended with code {code}"
        study.status = "failed" if study.result is None else "done"


async def _listen(study: Study, job: bytes) -> int:
    """Run a study in its own process and return the exit code. The process ends with this one."""
    # Its own process frees all memory at its end, and can be killed at any time.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "watching.dashboard.study_child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(job)
        await process.stdin.drain()
        process.stdin.close()
        async for line in process.stdout:
            told = orjson.loads(line)
            study.progress = told.get("progress", study.progress)
            study.result = told.get("result", study.result)
            study.error = told.get("error", study.error)
        return await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _job(asked: Document) -> Document:
    """Check what was asked for. Raises Problem."""
    kind, since = asked.get("kind"), asked.get("since") or 0.0
    if kind not in KINDS:
        raise Problem("invalid_field", f"kind is one of {', '.join(KINDS)}")
    if not isinstance(since, int | float):
        raise Problem("invalid_field", "since is a time in seconds")
    try:
        scenario = Scenario.model_validate(asked.get("scenario") or {})
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'scenario'}: {one['msg']}"
            for one in error.errors(include_url=False, include_context=False)
        )
        raise Problem("invalid_field", told) from error
    given = scenario.model_dump(mode="json", exclude_defaults=True) if kind == "what_if" else None
    return {"kind": kind, "since": float(since), "scenario": given}
