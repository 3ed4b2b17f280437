"""The promise of docs/how-to/upgrade.md: a worker of the next format reads what one of this format
wrote, and one of this format says that it can't read the next. The next format is made up here: it
compresses heads and records."""

from __future__ import annotations

import zlib

import pytest

from agents.table import keys
from router_state.changes import HEAD
from router_state.packing import framing
from router_state.router import RouterState
from router_state.state import record_bytes, restoring, state_pieces
from router_state.state.restoring import Bodies
from tests.agents.crashing import HOME
from tests.agents.table.test_unreadable_routers import (
    OTHER,
    ask,
    bill,
    reasons,
    restarted,
    said,
    settled,
)
from tests.memory_worker import MemoryWorker

NEXT = framing.FORMAT + 1


def start_the_next_version(patch: pytest.MonkeyPatch) -> None:
    """Let all workers from now on be of a version that writes the next format, and reads this one
    as well."""
    head, frame, present = state_pieces._head, framing.frame, record_bytes.READERS[NEXT - 1]

    def read(body: Bodies) -> RouterState:
        return restoring.read(
            lambda name: zlib.decompress(body(name)) if name == HEAD else body(name)
        )

    patch.setattr(framing, "FORMAT", NEXT)
    patch.setattr(state_pieces, "_head", lambda state: zlib.compress(head(state)))
    patch.setattr(record_bytes, "frame", lambda body: frame(zlib.compress(body)))
    patch.setattr(restoring, "READERS", {**restoring.READERS, NEXT: read})
    reader = record_bytes.Reader(
        lambda body: present.record(zlib.decompress(body)),
        lambda body: present.outline(zlib.decompress(body)),
    )
    patch.setattr(record_bytes, "READERS", {**record_bytes.READERS, NEXT: reader})


def formats(worker: MemoryWorker, kind: bytes, router_id: str) -> set[int]:
    """Return the numbers of the formats of a router's records of a kind."""
    return {
        value[0]
        for raw, value in worker.table(0).items()
        if raw[:1] == kind and keys.split(raw)[1] == router_id
    }


async def test_a_worker_of_the_next_format_goes_on_with_what_this_one_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, log = await settled()
    start_the_next_version(monkeypatch)
    after = await restarted(worker, {})
    await after.take("requests", [ask(log, HOME, f"{HOME}-1"), ask(log, HOME, f"{HOME}-2")])
    await after.take("costs", [bill(log, HOME, f"{HOME}-2")])
    await after.pass_time()
    assert [(route["seq"], route["repeat"]) for route in said(after, "routes", HOME)] == [
        (1, True),
        (2, False),
    ]
    assert said(after, "lambda", HOME)[-1]["settled"] == 1 and reasons(after) == []
    # A router is written whole, and a record when its request changes.
    for kind in (keys.HEAD, keys.CONFIG, keys.ARM):
        assert formats(after, kind, HOME) == {NEXT}
    assert formats(after, keys.REQUEST, HOME) == {NEXT - 1, NEXT}
    after.changelog = worker.changelog + after.changelog
    again = await restarted(after, {})
    await again.take("costs", [bill(log, HOME, f"{HOME}-1"), bill(log, OTHER, f"{OTHER}-1")])
    await again.pass_time()
    assert said(again, "lambda", HOME)[-1]["settled"] == 2
    assert said(again, "lambda", OTHER)[-1]["settled"] == 1


async def test_a_worker_of_this_format_sets_aside_what_the_next_one_wrote() -> None:
    worker, log = await settled()
    with pytest.MonkeyPatch.context() as patch:
        start_the_next_version(patch)
        between = await restarted(worker, {})
        await between.take("requests", [ask(log, HOME, f"{HOME}-2")])
    between.changelog = worker.changelog + between.changelog
    after = await restarted(between, {})
    await after.take("requests", [ask(log, HOME, f"{HOME}-3"), ask(log, OTHER, f"{OTHER}-2")])
    await after.pass_time()
    assert reasons(after) == ["router_unreadable"]
    (alert,) = said(after, "alerts", HOME)
    assert f"format {NEXT} is newer than {NEXT - 1}" in alert["evidence"]["why"]
    assert [route["seq"] for route in said(after, "routes", OTHER)] == [2]


def test_every_format_that_is_read_is_read_whole() -> None:
    assert restoring.READERS.keys() == record_bytes.READERS.keys()
    oldest = min(restoring.READERS)
    assert set(restoring.READERS) == set(range(oldest, framing.FORMAT + 1))
