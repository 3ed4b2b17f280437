"""Measure the cost of a family: the time of a decision, of a report with its answer and of an
estimate, and bytes:

    uv run python -m benchmarks.family_cost

A family has 50 members of three models and 26 dimensions, of which each has learned 600 requests.
"""

from __future__ import annotations

import time
import tracemalloc

import click
import numpy as np

from benchmarks.played import Played
from router_state.config import LIVE, ModelConfig, Price, RouterConfig
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_pieces import pack_piece
from router_state.families.family_reports import Model, Told
from router_state.state import state_pieces

D = 26
PRICES = {"small": Price(0.1, 0.4), "middle": Price(0.4, 2.0), "large": Price(1.25, 10.0)}
MEMBERS, LEARNED = 50, 600
TURNS, TIMED = 8, 400
REPORT_EVERY = 960.0
"""Rewards between two reports of a member that has learned for a memory's length."""


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


def take_over(engines: list[Played], told: list[list[Told]]) -> None:
    """Let each member take over the sums that its family sent."""
    for engine, notes in zip(engines, told, strict=True):
        for note in notes:
            engine.play(note, 1e6)


@click.command()
def main() -> None:
    """Print the cost of a family."""
    kept: dict[str, Model] = {}
    owner = FamilyOwner("all", kept.get)
    engines = [member(f"r{k:03d}", k, family=True) for k in range(MEMBERS)]
    began = time.process_time()
    for k, engine in enumerate(engines):
        of = engine.state.having(Family)
        assert of is not None
        owner.hear(of.reported(f"r{k:03d}", ""))
    reported = (time.process_time() - began) / MEMBERS
    size = sum(len(pack_piece(owner, piece) or b"") + len(piece) + 40 for piece in owner.changed)
    kept.update({name: model for name, model in owner.fresh.items() if model is not None})
    owner.fresh.clear()
    began = time.process_time()
    estimating = owner.estimating()
    estimating.run()
    estimated = time.process_time() - began
    owner.take(estimating)
    began = time.process_time()
    told = [owner.tell(f"r{k:03d}") for k in range(MEMBERS)]
    answered = (time.process_time() - began) / MEMBERS
    before = sum(len(one) for one in state_pieces.pack_pieces(engines[0].state).values())
    half = MEMBERS // 2
    began = time.process_time()
    take_over(engines[:half], told[:half])
    taken = (time.process_time() - began) / half
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    take_over(engines[half:], told[half:])
    held = (tracemalloc.get_traced_memory()[0] - base) / half
    tracemalloc.stop()
    after = sum(len(one) for one in state_pieces.pack_pieces(engines[0].state).values())
    click.echo(f"report {1e3 * reported:.2f} ms, answer {1e3 * answered:.2f} ms, taken over")
    click.echo(f"in {1e3 * taken:.2f} ms; estimate of {MEMBERS}: {1e3 * estimated:.0f} ms")
    # A family of n members estimates after each n reports, once all have a memory's length.
    each = (reported + answered + taken + estimated / MEMBERS) / REPORT_EVERY
    click.echo(f"{1e6 * each:.1f} µs a request, once members have learned for long")
    own = after - before
    whole = size / MEMBERS + own + held
    click.echo(f"bytes a member: {size / MEMBERS:.0f} at the owner, {own} in its record,")
    click.echo(f"{held:.0f} held; 10,000 members: {whole / 100:.0f} MB")
    alone, best = member("alone", 0, family=False), [np.inf, np.inf]
    for turn in range(TURNS):
        for at, engine in enumerate((alone, engines[0])):
            best[at] = min(best[at], decide(engine, turn))
    click.echo(f"decision alone {1e6 * best[0]:.1f} µs, in a family {1e6 * best[1]:.1f} µs")


if __name__ == "__main__":
    main()
