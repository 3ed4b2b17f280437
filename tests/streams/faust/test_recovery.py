"""What a recovery takes from the log, when it takes it for finished, and that a rebalance in
between leaves nothing taken over.
"""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from streams.changelog_format import EPOCH
from streams.faust.recovery import MOST_LOOKS, Recovery
from streams.faust.transport import PAUSED_FOR, Consumer
from streams.service.worker_app import App, build_app
from streams.settings import Settings

PARTITIONS = 2


@pytest.fixture
async def app() -> App:
    """Return a worker that was given two partitions, of which nothing has been read."""
    app = build_app(Settings(partitions=PARTITIONS))
    table = app.tables["router_states"]
    recovery = app.tables.recovery
    await app.states.assign(range(PARTITIONS))
    for tp in changelogs(app):
        app.tables._changelogs[tp.topic] = table
        recovery.add_active(table, tp)
        recovery.active_offsets[tp] = -1
        recovery.active_highwaters[tp] = 3
    recovery._set_recovery_started()
    return app


def changelogs(app: App) -> list[TP]:
    return [TP(app.settings.changelog, number) for number in range(PARTITIONS)]


def records(tp: TP, offsets: Iterable[int]) -> list[Any]:
    """Return records of a changelog as the fetcher gives them."""
    made = (
        SimpleNamespace(partition=tp.partition, offset=offset, key=b"k%d" % offset, value=b"v")
        for offset in offsets
    )
    return [SimpleNamespace(**vars(record), headers=((EPOCH, b"1"),)) for record in made]


def recovery_of(app: App) -> Recovery:
    found = app.tables.recovery
    assert isinstance(found, Recovery)
    return found


async def test_a_recovery_is_finished_when_every_partition_was_read_to_its_end(app: App) -> None:
    recovery, (first, second) = recovery_of(app), changelogs(app)
    recovery.restore(first, records(first, range(4)))
    recovery.restore(second, records(second, range(3)))
    assert not recovery.signal_recovery_end.is_set()
    recovery.restore(second, records(second, [3]))
    assert recovery.signal_recovery_end.is_set()
    assert [len(app.states.partition(number).records) for number in range(PARTITIONS)] == [4, 4]


async def test_the_end_of_one_recovery_does_not_end_the_next(app: App) -> None:
    recovery = recovery_of(app)
    for tp in changelogs(app):
        recovery.restore(tp, records(tp, range(4)))
    recovery._set_recovery_started()
    assert not recovery.signal_recovery_end.is_set()


async def test_records_of_a_partition_that_went_to_another_worker_are_left_out(app: App) -> None:
    recovery, (first, second) = recovery_of(app), changelogs(app)
    recovery.active_tps.discard(second)
    recovery.restore(second, records(second, range(4)))
    assert app.states.partition(second.partition).records == {}
    await app.states.assign([first.partition])
    recovery.active_tps.add(second)
    recovery.restore(second, records(second, range(4)))
    assert app.states.owned == {first.partition}


class Fetching(Consumer):
    """A consumer whose fetches are given, and may be overtaken by what happens meanwhile."""

    def __init__(
        self,
        app: App,
        active: set[TP],
        fetched: dict[TP, list[Any]],
        *,
        meanwhile: Any = lambda consumer: None,
    ) -> None:
        self.app, self._active_partitions, self.flow_active = app, active, True
        self._fetched, self._meanwhile = fetched, meanwhile
        self.fetches = 0
        self.slept: list[float] = []
        self.can_resume_flow = asyncio.Event()
        app._consumer = self
        self._thread = SimpleNamespace(caught_up=frozenset(), start_at={}, getmany=self._given)
        self._delivered_to = {}
        self._buffered_partitions: set[TP] = set()

    def highwater(self, tp: TP) -> int:
        """Return where the log ends, which nobody asks here."""
        return 0

    async def _given(self, active: Any, timeout: float) -> Any:  # noqa: ASYNC109
        self.fetches += 1
        self._meanwhile(self)
        return self._fetched

    async def wait(self, *signals: Any, **options: Any) -> Any:
        """Let the flow go on, as a recovery does."""
        self.flow_active = True

    async def sleep(self, seconds: Any, **options: Any) -> None:
        """Sleep not at all."""
        self.slept.append(seconds)


async def test_the_changelogs_records_go_to_the_recovery_and_all_others_to_the_streams(
    app: App,
) -> None:
    first, _ = changelogs(app)
    source = TP(app.settings.topic("requests"), 0)
    batches = {first: records(first, range(4)), source: records(source, [7])}
    given: dict[TP, list[Any]] = {}
    app.sources = SimpleNamespace(deliver=given.__setitem__, unfinished=0)  # type: ignore[assignment]
    await Fetching(app, {first, source}, batches)._fetch_once()
    assert given == {source: batches[source]}
    assert app.states.recovers_from(0) == 3


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda consumer: consumer._active_partitions.clear(),
        lambda consumer: setattr(consumer, "flow_active", False),
    ],
    ids=["paused", "stopped"],
)
async def test_what_was_fetched_before_a_rebalance_is_not_recovered_after_it(
    app: App, meanwhile: Any
) -> None:
    first, _ = changelogs(app)
    await Fetching(
        app, {first}, {first: records(first, range(2, 4))}, meanwhile=meanwhile
    )._fetch_once()
    assert app.states.recovers_from(0) == -1


async def test_nothing_is_fetched_while_every_partition_is_paused(app: App) -> None:
    consumer = Fetching(app, set(), {})
    await consumer._fetch_once()
    assert consumer.fetches == 0


async def test_a_flow_that_goes_on_before_its_partitions_do_is_looked_at_again_at_once(
    app: App,
) -> None:
    consumer = Fetching(app, set(), {})
    consumer.flow_active = False
    await consumer._fetch_once()
    assert (consumer.slept, consumer.fetches) == ([PAUSED_FOR], 0)


@pytest.mark.parametrize("again", ["announced", "done"])
async def test_a_recovery_that_a_rebalance_breaks_off_takes_nothing_over(
    app: App, again: str
) -> None:
    recovery, generation = recovery_of(app), app.consumer_generation_id
    app._consumer = SimpleNamespace()
    taken: list[Any] = []
    app.on_rebalance_complete.connect(lambda *_, **__: taken.append("announced"), weak=False)
    if again == "announced":
        recovery.signal_recovery_start.set()
    else:
        app.consumer_generation_id += 1
    await recovery.on_recovery_completed(generation)
    assert taken == []
    assert recovery.in_recovery
    assert not recovery.completed.is_set()


@pytest.mark.parametrize("why", ["stopped", "rebalance"])
async def test_a_recovery_that_a_stop_or_a_rebalance_ends_at_its_last_look_ends_quietly(
    app: App, why: str
) -> None:
    recovery = recovery_of(app)

    async def highwaters(*tps: TP) -> dict[TP, int]:
        (recovery._stopped if why == "stopped" else recovery.signal_recovery_start).set()
        await asyncio.sleep(3600)
        raise AssertionError

    app._consumer = SimpleNamespace(highwaters=highwaters)
    await recovery.on_recovery_completed(app.consumer_generation_id)
    assert recovery.in_recovery
    assert not recovery.completed.is_set()


class Growing:
    """A consumer of changelogs to which an owner before still writes."""

    def __init__(self, app: App, ends: Iterable[int]) -> None:
        self._app, self._ends = app, iter(ends)
        self.end = 0
        self.paused: list[bool] = []

    async def highwaters(self, *tps: TP) -> dict[TP, int]:
        """Return where both logs end by now."""
        self.end = next(self._ends)
        return dict.fromkeys(tps, self.end)

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Fetch what there is, at once."""
        self.paused.append(False)
        for tp in tps:
            recovery_of(self._app).restore(tp, records(tp, range(self.end)))

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        """Fetch no more."""
        self.paused.append(True)

    def resume_flow(self) -> None:
        """Let the flow go on."""


@pytest.mark.parametrize(
    ("ends", "times"),
    [([4], 0), ([6, 6], 1), ([6, 7, 7], 2), (range(5, 50), MOST_LOOKS)],
    ids=["ended", "one batch more", "two", "no end"],
)
async def test_what_lands_during_a_recovery_is_read_before_the_partition_is_taken_over(
    app: App, ends: Iterable[int], times: int
) -> None:
    recovery, consumer = recovery_of(app), Growing(app, ends)
    for tp in changelogs(app):
        recovery.restore(tp, records(tp, range(4)))

    async def started() -> None:
        return None

    app._consumer, app._fetcher = consumer, SimpleNamespace(maybe_start=started)
    await recovery._read_on()
    assert consumer.paused == [False, True] * times
    assert not recovery.need_recovery()
    assert (
        app.states.recovers_from(0) == consumer.end - 1 == max(recovery.active_highwaters.values())
    )
