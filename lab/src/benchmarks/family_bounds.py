"""Bound what families would gain if members shared what they know of verifiers, and of judges.

    python -m benchmarks.family_bounds                # 30 drawn worlds
    python -m benchmarks.family_bounds --oracle sources --seeds 10

In each world a first router learns from labels of all its requests, or of as few as a newcomer has.
A newcomer to the same world then takes over the first router's tables of verifiers, or its pairs of
judge and gold, before its own first request. No family could tell more, as members are never more
alike. Beside it the same newcomer starts cold. What either knows of models is its own, or the same.
Labels come 100 requests late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import click
import numpy as np

from benchmarks.arena import Array
from benchmarks.attempt_worlds import Judged, drawn
from benchmarks.attempts import HELD_BACK, Dealt, played, started
from benchmarks.played import Played
from benchmarks.rows import half_width
from benchmarks.source_play import DELAY, config_of
from benchmarks.source_worlds import World
from benchmarks.source_worlds import drawn as drawn_labels
from router_state import events
from router_state.attempts.verdicts import Attempts
from router_state.sources.measured_sources import MeasuredSources

NEWCOMERS, FIRST = 500, 200
"""Requests of a newcomer, and how many of them are its first."""
FEE = 0.01
"""Dollars of a verdict, in budgets."""
GOLD = 0.02
"""Share of a newcomer's requests that people label."""
LATER = 10_000
"""Added to a world's seed for the chance that newcomers have."""
Pair = tuple[Array, Array]
"""A newcomer's requests, cold, and with what the first router knows: shape (2, requests), rewards
and dollars in budgets. Labels have no dollars."""


def verifiers(labels: float, seed: int, *, models_known: bool = False) -> Pair:
    """Play a newcomer with a verifier that passes .9 of the right answers, and stops .8 of the
    wrong ones.

    Args:
        labels: share of the newcomer's requests that are labelled.
        models_known: whether newcomers have learned the models, without a verifier, from the first
            router's requests, as a member has from its family.
    """
    judged = drawn(seed)
    before = Dealt.draw(_part(judged, slice(-NEWCOMERS)), "good", labels=1.0, seed=seed)
    after = Dealt.draw(
        _part(judged, slice(-NEWCOMERS, None)), "good", labels=labels, seed=seed + LATER
    )
    fee = FEE * judged.budget
    begin = _learned if models_known else _begun
    teacher, cold, told = (
        _begun(before, seed, fee),
        begin(before, seed, fee),
        begin(before, seed, fee),
    )
    played(teacher, before, fee=fee)
    known, own = (one.state.having(Attempts) for one in (teacher, told))
    assert known is not None and own is not None
    own.restore({}, lambda piece: known.pack(piece) or b"")
    return _spent(cold, after, fee), _spent(told, after, fee)


def _begun(dealt: Dealt, seed: int, fee: float) -> Played:
    return started(dealt, fee=fee, exact=False, attempts=2, seed=seed)


def _learned(dealt: Dealt, seed: int, fee: float) -> Played:
    """Return a router that has played without a verifier, and declares one now."""
    engine = started(dealt, fee=fee, exact=False, attempts=1, seed=seed)
    played(engine, dealt, fee=fee)
    # The newcomer's requests have the same names.
    engine.forget_early(keep=0, limit=len(dealt.contexts))
    engine.configure(_begun(dealt, seed, fee).state.config, now=0.0)
    return engine


def _spent(engine: Played, dealt: Dealt, fee: float) -> Array:
    _, reward, cost = played(engine, dealt, fee=fee)
    return np.array([reward, cost / dealt.judged.budget])


def _part(judged: Judged, rows: slice) -> Judged:
    return replace(
        judged,
        contexts=judged.contexts[rows],
        rewards=judged.rewards[rows],
        costs=judged.costs[rows],
    )


def sources(attack: str, seed: int, *, taught: float = 1.0) -> Pair:
    """Play a newcomer whose judge is calibrated.

    Args:
        taught: share of the first router's requests that people label.
    """
    world = drawn_labels(seed, attack)
    before, after = _rows(world, slice(-NEWCOMERS)), _rows(world, slice(-NEWCOMERS, None))
    teacher, cold, told = (
        Played.start(config_of(one, seed, "on")) for one in (before, after, after)
    )
    label(teacher, before, share=taught, seed=seed)
    _tell_pairs(teacher, told)
    return (
        label(cold, after, share=GOLD, seed=seed),
        label(told, after, share=GOLD, seed=seed, told=True),
    )


def _rows(world: World, rows: slice) -> World:
    return World(world.x[rows], world.gold[rows], tuple(one[rows] for one in world.judges))


def _sources(engine: Played) -> MeasuredSources:
    found = engine.state.having(MeasuredSources)
    assert found is not None
    return found


def _tell_pairs(teacher: Played, told: Played) -> None:
    known, own = _sources(teacher), _sources(told)
    cells = product(known.declared.judges, own.arms.names)
    own.pairs.restore(cells, lambda piece: known.pairs.pack(piece) or b"")
    own.pairs.start_over()


def label(engine: Played, world: World, *, share: float, seed: int, told: bool = False) -> Array:
    """Play a router, all of whose requests are judged; return the gold rewards, see `Pair`.

    Args:
        share: of the requests that people label.
        told: whether offsets follow at each label, as they are known before the router's own pair.
    """
    n, known = len(world.x), _sources(engine)
    asked = np.random.default_rng([seed, 1]).random(n) < share
    chosen = np.zeros(n, np.int64)
    for t in range(n):
        chosen[t] = int(engine.decide(f"r{t}", world.x[t], now=float(t)).model[1:])
        i = t - DELAY
        if i < 0:
            continue
        k = chosen[i]
        engine.play(events.Judged(f"r{i}", float(world.judges[0][i, k]), "judge-0", 1))
        if told:
            known.calibration.follow("judge-0", engine.state.arms)
        if asked[i]:
            engine.play(events.Judged(f"r{i}", float(world.gold[i, k]), "human", 2))
    return np.array([world.gold[np.arange(n), chosen], np.zeros(n)])


ORACLES: dict[str, dict[str, Callable[[int], Pair]]] = {
    "verifiers": {
        "verifier .9/.8, 10 % labelled": lambda seed: verifiers(0.1, seed),
        "verifier .9/.8, all labelled": lambda seed: verifiers(1.0, seed),
    },
    "verifiers, models known": {
        "models known, 10 % labelled": lambda seed: verifiers(0.1, seed, models_known=True),
        "models known, all labelled": lambda seed: verifiers(1.0, seed, models_known=True),
    },
    "sources": {
        "judge favours a model by 0.2, 2 % gold": lambda seed: sources("self-preference", seed),
        "judge is honest, 2 % gold": lambda seed: sources("honest", seed),
    },
    "sources, 2 % gold everywhere": {
        "judge favours a model by 0.2": lambda seed: sources("self-preference", seed, taught=GOLD),
        "judge is honest": lambda seed: sources("honest", seed, taught=GOLD),
    },
}
"""Plays by oracle, and by the name of their row."""


@click.command()
@click.option("--oracle", "oracles", multiple=True, type=click.Choice(list(ORACLES)))
@click.option("--seeds", default=30, show_default=True)
@click.option("--from", "first", default=HELD_BACK, show_default=True, help="First seed.")
def main(*, oracles: Sequence[str], seeds: int, first: int) -> None:
    """Compare newcomers that are told of verifiers or judges with those that start cold."""
    click.echo("| world | requests | cold | told | told − cold, 95 % |\n" + "| --- " * 5 + "|")
    for oracle in oracles or ORACLES:
        for name, play in ORACLES[oracle].items():
            pairs = np.array([play(seed) for seed in range(first, first + seeds)])
            for n in (FIRST, NEWCOMERS):
                click.echo(row(name, n, pairs[..., :n].mean(3)))


def row(name: str, n: int, means: Array) -> str:
    """Return a row of the table.

    Args:
        means: by seed, newcomer (cold, told) and kind (reward, dollars), shape (seeds, 2, 2).
    """
    shown = [
        f"{reward:.3f}" + (f" ({spent:.2f})" if spent else "") for reward, spent in means.mean(0)
    ]
    gains = means[:, 1, 0] - means[:, 0, 0]
    gain = f"{gains.mean():+.4f} ± {half_width(gains.tolist()):.4f}"
    return f"| {name} | {n} | {' | '.join(shown)} | {gain} |"


if __name__ == "__main__":
    main()
