"""Run several workers of one group on one machine: `pbstream worker --processes N`.

Python runs one thread at a time; so one process uses one core. The crew starts the processes,
replaces those that end, adds up their metrics and is ready when all of them are.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable

import aiohttp
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge

from commands.crew.member import Member
from commands.crew.summing import Sums
from streams.service.memory_limit import usual_memory
from streams.service.web import Web
from streams.settings import Settings

log = logging.getLogger(__name__)

SOON, LATE = 0.5, 30.0
"""Seconds until a process that has ended is replaced: the first pause, and the longest."""
SOUND = 60.0
"""Seconds after which a process counts as sound, so that the pause starts again at the first."""
ANSWERS_WITHIN = 2.0
"""Seconds within which a member must answer."""
STOPS_WITHIN = 60.0
"""Longest wait for members to stop, in seconds; one takes 2 to 5."""


class Crew:
    """The members, and the web server that answers for them.

    Attributes:
        announce: called with the address of /readyz, once it is served.
        status: exit status of the crew's own process.
    """

    def __init__(self, settings: Settings, *, processes: int, log_level: str) -> None:
        self._members = [
            Member(number, member_settings(settings, number, of=processes), log_level)
            for number in range(processes)
        ]
        registry = CollectorRegistry()
        self._restarts = Counter(
            "pb_member_restarts_total", "Worker processes replaced", registry=registry
        )
        members = Gauge("pb_members", "Worker processes wanted", registry=registry)
        members.set(processes)
        self.sums = Sums(registry)
        self.web = CrewWeb(self, settings.web_bind, settings.web_port)
        self._stopping = asyncio.Event()
        self._scraping = asyncio.Lock()
        self.announce: Callable[[str], None] = lambda address: None
        self.status = 0

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until a member could not start."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stopping.set)
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=ANSWERS_WITHIN)
        ) as self._http:
            await self.web.start()
            self.announce(f"http://{self.web.address}/readyz")
            places = [asyncio.create_task(self._fill(member)) for member in self._members]
            await self._stopping.wait()
            await self._stop(places)
            await self.web.stop()

    async def _fill(self, member: Member) -> None:
        """Restart a member whenever it ends, with pauses that double."""
        pause = SOON
        while not self._stopping.is_set():
            began = time.monotonic()
            member.start()
            log.info("member=%d pid=%s started", member.number, member.pid)
            status = await member.ended()
            self.sums.ended(member.number)
            if self._stopping.is_set():
                return
            log.error("member=%d pid=%s ended status=%d", member.number, member.pid, status)
            if not member.was_up:  # it has logged why, and would fail again
                self.status = status if status > 0 else 1
                self._stopping.set()
                return
            # A long run resets the pause. A process that keeps ending must not keep the group
            # rebalancing.
            pause = SOON if time.monotonic() - began > SOUND else min(2 * pause, LATE)
            self._restarts.inc()
            try:
                await asyncio.wait_for(self._stopping.wait(), pause)
            except TimeoutError:
                continue

    async def _stop(self, places: list[asyncio.Task[None]]) -> None:
        for member in self._members:
            member.stop()
        _, late = await asyncio.wait(places, timeout=STOPS_WITHIN)
        if late:
            log.error("members did not stop within %g s and are killed", STOPS_WITHIN)
            for member in self._members:
                member.stop(at_once=True)
        await asyncio.gather(*places)

    async def not_ready(self) -> str:
        """Return the members that are not ready, and why; empty if all are."""
        answers = await asyncio.gather(*(self._ask(member, "/readyz") for member in self._members))
        return "\n".join(
            f"member {member.number}: {text.strip()}"
            for member, (status, text) in zip(self._members, answers, strict=True)
            if status != 200
        )

    async def scrape(self) -> bytes:
        """Return the sums of the members' metrics; a member that does not answer counts with its
        last values.
        """
        # One scrape at a time, so that a member's later answer is taken in last.
        async with self._scraping:
            await asyncio.gather(*(self._count(member) for member in self._members))
        return self.sums.page()

    async def _count(self, member: Member) -> None:
        asked = member.address
        status, text = await self._ask(member, "/metrics")
        # The last answer of a member that ended meanwhile is already in the sums.
        if status == 200 and member.address == asked:
            self.sums.take(member.number, text)

    async def _ask(self, member: Member, path: str) -> tuple[int, str]:
        if member.address is None:
            return 503, "starting"
        try:
            async with self._http.get(member.address + path) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return 503, "does not answer"


class CrewWeb(Web):
    """Answer for all members."""

    def __init__(self, crew: Crew, bind: str, port: int) -> None:
        super().__init__(
            bind=bind,
            port=port,
            registry=CollectorRegistry(),
            not_ready=lambda: None,
            before_scrape=lambda: None,
        )
        self._crew = crew

    async def _readyz(self, request: web.Request) -> web.Response:
        reason = await self._crew.not_ready()
        return (
            web.Response(text=f"{reason}\n", status=503) if reason else web.Response(text="ready\n")
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(
            body=await self._crew.scrape(), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )


def member_settings(settings: Settings, number: int, *, of: int) -> Settings:
    """Return a member's settings: its share of the memory, a name and a port of its own."""
    return settings.model_copy(
        update={
            "web_bind": "127.0.0.1",
            "web_port": 0,
            "memory_bytes": max((settings.memory_bytes or usual_memory()) // of, 2**20),
            "instance_id": settings.instance_id and f"{settings.instance_id}-{number}",
        }
    )
