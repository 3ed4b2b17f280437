"""`pbstream snapshot backup` and `restore`: every router of a service, into a folder and
out of it.
"""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from commands.cli.snapshot_file import LARGEST, read_file
from doors.console.bus import open_bus
from doors.console.changing_declarations import TOPICS, refusal_of
from doors.console.failures import Failure, NoAnswer, Refused
from doors.console.output import print_json
from doors.console.session import Session, json_option, option, pass_session, run
from doors.pools.declaring import read_pools, write_pool
from ground.boundary import undoing
from ground.json_values import Document
from ground.messages import Placed, Record, key_text
from schemas.headers import BASED_ON

if TYPE_CHECKING:
    from doors.console.bus import Bus

SUFFIX = ".pbs"
"""Suffix of a portable snapshot's file."""
POOLS = "pools.json"
"""File of the declarations of pools."""
ROUTERS_AT_ONCE = 32
"""Most declarations in flight at once; some hundred KB each."""


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--keep",
    type=click.IntRange(1),
    help="Number of backups to keep: older ones in FOLDER are deleted afterwards.",
)
@json_option
@pass_session
def backup(session: Session, folder: Path, keep: int | None, as_json: bool) -> None:
    """Write every router's state into a new folder inside FOLDER, named by the time; the service
    may run or not.

    An interrupted backup leaves no such folder. To schedule it, use cron or the CronJob of the Helm
    chart.

    \b
      pbstream snapshot backup /backups --keep 14
    """
    from streams.log.service_topics import TopicsNotReady, check_topics

    settings, began = session.settings, time.monotonic()
    if problems := run(check_topics(settings)):
        raise TopicsNotReady("\n".join(problems))
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    # Renamed when complete, so that nobody copies or restores half a backup.
    part = folder / f".{stamp}.part"
    part.mkdir(parents=True)
    with undoing(lambda: shutil.rmtree(part, ignore_errors=True)):
        routers, size = run(_write_all(session, part))
    made = part.rename(folder / stamp)
    # Only now: a backup that fails must not have deleted an older one.
    for old in _backups(folder)[: -keep if keep else None] if keep else ():
        shutil.rmtree(old)
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        print_json({"folder": str(made), "routers": routers, "bytes": size, "seconds": seconds})
    else:
        click.echo(f"{routers:,} routers, {size:,} bytes in {made}, {seconds} s.")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option("--timeout", click.FloatRange(min=0.1), 60.0, "Seconds to wait for an answer.")
@json_option
@pass_session
def restore(session: Session, folder: Path, timeout: float, as_json: bool) -> None:
    """Declare every pool and router of a backup: FOLDER is one backup, or the folder of backups, of
    which the newest is taken.

    Routers that are declared already are left alone, so an interrupted restore can be run again.
    Each router goes on as after `pbstream snapshot import`.

    \b
      PB_BOOTSTRAP=other:9092 pbstream topics create
      PB_BOOTSTRAP=other:9092 pbstream snapshot restore /backups
    """
    began = time.monotonic()
    newest = (
        folder if any(folder.glob(f"*{SUFFIX}")) else next(iter(reversed(_backups(folder))), None)
    )
    files = sorted(newest.glob(f"*{SUFFIX}")) if newest is not None else []
    if not files:
        raise Failure(f"{folder} holds no backup: no *{SUFFIX}, and no folder of them.")
    if (pools := files[0].parent / POOLS).exists():
        run(_declare_pools(session, orjson.loads(pools.read_bytes())))
    restored, there = run(_declare_all(session, files, timeout))
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        print_json(
            {"folder": str(newest), "restored": restored, "were_there": there, "seconds": seconds}
        )
    else:
        click.echo(
            f"{restored:,} routers restored from {newest}, {there:,} were there already, "
            f"{seconds} s."
        )


def _backups(folder: Path) -> list[Path]:
    """Return the complete backups in a folder, the oldest first."""
    # Sorted by name, which is a time; an unfinished backup begins with a dot.
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name[:1].isdigit())


async def _write_all(session: Session, folder: Path) -> tuple[int, int]:
    from streams.state.exporting import pack, read_states

    routers = size = 0
    async for router_id, state in read_states(session.settings):
        data = pack(state, router_id, session.settings)
        (folder / f"{router_id}{SUFFIX}").write_bytes(data)
        routers, size = routers + 1, size + len(data)
    async with open_bus(session.settings, "pools") as bus:
        if pools := await read_pools(bus):
            (folder / POOLS).write_bytes(orjson.dumps(pools))
    return routers, size


async def _declare_pools(session: Session, pools: Document) -> None:
    """Declare those pools of a backup that do not exist; they grant anew."""
    async with open_bus(session.settings, "pools") as bus:
        there = await read_pools(bus)
        for pool_id, document in pools.items():
            if pool_id not in there:
                await write_pool(bus, pool_id, document)


async def _declare_all(session: Session, files: list[Path], patience: float) -> tuple[int, int]:
    """Declare the routers of a backup; return how many were declared and how many existed. Existing
    routers are skipped, because their declarations would be refused and leave dead letters.
    """
    from commands.cli.routers_command import every_router

    async with open_bus(session.settings, *TOPICS) as bus:
        rows = await every_router(bus)
        known = {row["router_id"] for row in rows if row["decided"] is not None}
        missing = [file for file in files if not known or _router_of(file) not in known]
        restored, there = 0, len(files) - len(missing)
        for first in range(0, len(missing), ROUTERS_AT_ONCE):
            new, old = await _declare_some(bus, missing[first : first + ROUTERS_AT_ONCE], patience)
            restored, there = restored + new, there + old
    return restored, there


async def _declare_some(bus: Bus, files: list[Path], patience: float) -> tuple[int, int]:
    there = 0
    # One consumer waits for all routers: waiting for each would take a round trip each.
    async with bus.follow("lambda", "dlq", router_id=None) as records:
        pending = {}
        for file in files:
            router_id, document = _declaration(file)
            headers = [(BASED_ON, b"-1")]  # only where there is none
            pending[router_id] = await bus.send_bytes(
                "routers", router_id, orjson.dumps(document), headers=headers
            )
        count, deadline = len(pending), time.monotonic() + patience
        while pending:
            if time.monotonic() > deadline:
                raise NoAnswer(
                    patience, web_port=bus.settings.web_port, waited_for="took up the declarations"
                )
            for name, record in await records.arrivals():
                there += _settle(name, record, pending)
    return count - there, there


def _router_of(file: Path) -> str:
    return str(read_file(file)[1].about.get("router_id", ""))


def _declaration(file: Path) -> tuple[str, Document]:
    from streams.state.exporting import declaration_from

    data, exported = read_file(file)
    router_id = str(exported.about.get("router_id", ""))
    document = declaration_from(exported.state.config, router_id, data)
    # Said here, with the file's name, before the broker refuses a message of that size.
    if len(document["snapshot"]) > LARGEST:
        raise Failure(f"{file} has {len(data):,} bytes; a declaration takes {LARGEST * 3 // 4:,}.")
    return router_id, document


def _settle(name: str, record: Record, pending: dict[str, Placed]) -> int:
    """Remove the router that this record answers from `pending`; return 1 if it existed already."""
    if name == "lambda":
        router_id = key_text(record)
        placed = pending.get(router_id)
        if placed is None or record.value is None:
            return 0
        in_force = orjson.loads(record.value)["config_offset"]
        if in_force < placed.offset:
            return 0
        del pending[router_id]
        return int(in_force > placed.offset)  # another declaration, written again behind this one
    # A dead letter names the place of its source and not its router, so it is held against each of
    # them.
    for router_id, placed in list(pending.items()):
        refused = refusal_of(record, placed, f"the declaration of {router_id}")
        if isinstance(refused, Refused):
            # A router that is declared already refuses the condition "none is there", and is left
            # alone.
            if refused.reason != "stale_config":
                raise refused
            del pending[router_id]
            return 1
    return 0
