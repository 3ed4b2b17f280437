"""Measure the cost of a family: the time of a decision, of a report with its answer and of an
estimate, and memory:

    uv run python -m benchmarks.family_cost

A family has 50 members of three models and 26 dimensions, of which each has learned 600 requests.
Memory is what Python allocates for the owner and for a member, their records in the worker's table
included. A record that a member holds is the table's own.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from msgspec import msgpack

from agents.table import keys
from agents.table.family_records import Families
from agents.table.router_records import key_of
from benchmarks.played import Played
from router_state.config import LIVE, ModelConfig, Price, RouterConfig
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import LONG, Family
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import MemberPrior, Model, Report
from router_state.families.family_sums import sums_of
from router_state.kernel import GROWTH
from router_state.kernel.learning.gaussian import alike
from router_state.state import state_pieces
from streams.state.table_partition import Partition

D = 26
PRICES = {"small": Price(0.1, 0.4), "middle": Price(0.4, 2.0), "large": Price(1.25, 10.0)}
MEMBERS, LEARNED = 50, 600
TURNS, TIMED = 8, 400
NAMES = [f"r{k:03d}" for k in range(MEMBERS)]
MEASURED = 8
"""Members whose memory is measured."""
AGES = (200, 1_000, 2_000, 6_000)
"""Requests that a member has learned."""
REQUESTS_PER_SECOND, BUSY = 500.0, 0.66
"""Load of a worker, and the share of its core that it takes: docs/how-to/scale.md."""


def member(name: str, seed: int, *, family: bool) -> Played:
    """Return a router that has learned."""
    models = {model: ModelConfig(price) for model, price in PRICES.items()}
    declared = {"family": FamilyDeclared("all")} if family else {}
    config = RouterConfig(models, 0.002, D, "live", LIVE, capabilities=declared)
    engine, rng = Played.start(config), np.random.default_rng(seed)
    play(engine, rng, 0, LEARNED)
    return engine


def play(engine: Played, rng: np.random.Generator, first: int, count: int) -> None:
    """Let requests be decided, billed and judged."""
    for k in range(first, first + count):
        x = np.append(rng.normal(size=D - 1), 1.0)
        engine.decide(str(k), x, now=float(k))
        engine.settle(str(k), cost_usd=float(rng.lognormal(-7.0)))
        engine.learn(str(k), reward=float(np.clip(0.6 + 0.1 * x[0] + 0.1 * rng.normal(), 0, 1)))
    engine.forget_early(keep=100)


def decide(engine: Played, turn: int) -> float:
    """Return the seconds of a decision."""
    rng = np.random.default_rng(turn)
    contexts = [np.append(rng.normal(size=D - 1), 1.0) for _ in range(TIMED)]
    began = time.process_time()
    for k, x in enumerate(contexts):
        engine.decide(f"{turn}-{k}", x, now=1e6)
    return (time.process_time() - began) / TIMED


def take_over(engines: list[Played], told: list[list[MemberPrior]]) -> None:
    """Let each member take over the sums that its family sent."""
    for engine, notes in zip(engines, told, strict=True):
        for note in notes:
            engine.play(note, 1e6)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a report that is heard, an answer, its take-over, and an estimate of all."""

    report: float
    answer: float
    taking: float
    estimate: float

    def each(self, requests: float) -> float:
        """Return the seconds of a request of a member that has learned this many."""
        # A family of n members estimates after each n reports.
        whole = self.report + self.answer + self.taking + self.estimate / MEMBERS
        return whole / (GROWTH * min(requests, LONG))


def timed(engines: list[Played]) -> tuple[Times, list[Report], list[list[MemberPrior]]]:
    """Return how long each part takes, and what was reported and told."""
    kept: dict[str, Model] = {}
    owner, reports = FamilyOwner("all", kept.get), []
    began = time.process_time()
    for name, engine in zip(NAMES, engines, strict=True):
        reports.append(membership(engine).reported(name, ""))
        owner.take_report(reports[-1])
    reported = time.process_time() - began
    kept.update({name: model for name, model in owner.fresh.items() if model is not None})
    owner.fresh.clear()
    began = time.process_time()
    estimating = owner.estimating()
    estimating.run()
    estimated = time.process_time() - began
    owner.take(estimating)
    began = time.process_time()
    told = [owner.priors_for(name) for name in NAMES]
    answered = time.process_time() - began
    began = time.process_time()
    take_over(engines, told)
    taken = time.process_time() - began
    report, answer, taking = (one / MEMBERS for one in (reported, answered, taken))
    return Times(report, answer, taking, estimated), reports, told


def membership(engine: Played) -> Family:
    """Return a router's membership."""
    found = engine.state.having(Family)
    assert found is not None
    return found


def at_owner(reports: list[Report]) -> float:
    """Return the bytes of a member at the owner of its family, which has estimated once."""
    packed = [msgpack.encode(one) for one in reports]
    tracemalloc.start()
    table = Partition(0)
    families = Families(table, {})
    owner = families.owner("all")
    for one in packed:
        owner.take_report(msgpack.decode(one, type=Report))
    estimating = owner.estimating()
    estimating.run()
    owner.take(estimating)
    owner.waiting.clear()
    families.dirty.add("all")
    with table.writing():
        families.write()
    table.take()
    del estimating
    return traced() / MEMBERS


def beside_router(told: list[list[MemberPrior]]) -> float:
    """Return the bytes that a router takes more as a member."""
    packed = [[msgpack.encode(one) for one in notes] for notes in told[:MEASURED]]
    tracemalloc.start()
    engines = [member(name, k, family=True) for k, name in enumerate(NAMES[:MEASURED])]
    table = Partition(0)
    for name, engine in zip(NAMES, engines, strict=False):
        stored(table, name, engine)
    forget_cached()
    base = tracemalloc.get_traced_memory()[0]
    for name, engine, notes in zip(NAMES, engines, packed, strict=False):
        take_over([engine], [[msgpack.decode(one, type=MemberPrior) for one in notes]])
        stored(table, name, engine)
    return (traced() - base) / MEASURED


def stored(table: Partition, name: str, engine: Played) -> None:
    """Put a router's pieces into the table, as a worker does."""
    before = keys.key(b"", name)
    with table.writing():
        for piece, packed in state_pieces.pack_pieces(engine.state).items():
            at = key_of(before, piece)
            # Records that replace others are not looked up among equal ones, which are kept.
            if at not in table.records:
                table.put(at, b"")
            if table.get(at) != packed:
                table.put(at, packed)
    table.take()
    engine.state.journal.pieces.clear()


def forget_cached() -> None:
    """Empty the caches: they are bounded for the whole process, whatever the number of families."""
    caches: tuple[Any, ...] = (sums_of, alike)
    for cache in caches:
        cache.cache_clear()
    gc.collect()


def traced() -> int:
    """Return the bytes that Python holds, and stop counting them."""
    forget_cached()
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return found


@click.command()
def main() -> None:
    """Print the cost of a family."""
    engines = [member(name, k, family=True) for k, name in enumerate(NAMES)]
    times, reports, told = timed(engines)
    click.echo(
        f"report {1e3 * times.report:.2f} ms, answer {1e3 * times.answer:.2f} ms, taken over in "
        f"{1e3 * times.taking:.2f} ms; estimate of {MEMBERS}: {1e3 * times.estimate:.0f} ms"
    )
    for requests in AGES:
        each = times.each(requests)
        share = 100.0 * each * REQUESTS_PER_SECOND / BUSY
        click.echo(f"a request after {requests:,}: {1e6 * each:.0f} µs, {share:.1f} % of its CPU")
    sizes = at_owner(reports), beside_router(told)
    click.echo(f"bytes a member: {sizes[0]:.0f} at the owner, {sizes[1]:.0f} beside its router;")
    click.echo(f"10,000 members: {sum(sizes) / 100:.0f} MB")
    alone, best = member("alone", 0, family=False), [np.inf, np.inf]
    for turn in range(TURNS):
        for at, engine in enumerate((alone, engines[0])):
            best[at] = min(best[at], decide(engine, turn))
    click.echo(f"decision alone {1e6 * best[0]:.1f} µs, in a family {1e6 * best[1]:.1f} µs")


if __name__ == "__main__":
    main()
