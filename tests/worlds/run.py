"""`make worlds`: draw worlds until the time is up, and name each promise that was broken with the
seed that shows it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter

import click

from tests.worlds import extremes
from tests.worlds.drawing import draw
from tests.worlds.playing import play

FLEET_OF = 4
"""Worlds for each fleet of extremes, which takes half a second."""
LONG, SHORT = 1_200, 100
"""Requests of every eighth world, in which the budget is held to, and of the others."""


def requests_of(seed: int) -> int:
    """Return how many requests a world has."""
    return SHORT if seed % 8 else LONG


def _play_fleet(seed: int) -> bool:
    """Play a fleet of extreme declarations and bills; tell whether a promise was broken."""
    found = asyncio.run(extremes.play(seed))
    for promise in found[:3]:
        click.echo(f"fleet {seed}: {promise}")
    return bool(found)


@click.command()
@click.option(
    "--minutes",
    default=60.0,
    show_default=True,
    help="Stop after so long, or after a million events in 2,000 worlds.",
)
@click.option("--first", default=0, show_default=True, help="Seed of the first world.")
@click.option("--count", default=2_000, show_default=True, help="Worlds.")
@click.option("--events", default=1_000_000, show_default=True, help="Events.")
def main(minutes: float, first: int, count: int, events: int) -> None:
    """Play drawn events to drawn routers."""
    started, played, broken = time.monotonic(), Counter[str](), 0
    for seed in range(first, first + count):
        if time.monotonic() - started > 60.0 * minutes or (
            played["events"] >= events and played["worlds"] >= count
        ):
            break
        world = draw(seed, n=requests_of(seed))
        game = play(world)
        played.update(worlds=1, events=game.events, affordable=int(world.is_affordable))
        for promise in game.broken[:3]:
            click.echo(f"seed {seed} {world.profile} {world.kinds}: {promise}")
        broken += bool(game.broken)
        if seed % FLEET_OF == 0:
            broken += _play_fleet(seed)
            played["fleets"] += 1
    took = time.monotonic() - started
    click.echo(
        f"{played['worlds']:,} worlds, {played['events']:,} events in {took:.0f} s; budget held "
        f"to in {played['affordable']:,}; {played['fleets']:,} fleets; "
        f"{broken:,} worlds with broken promises"
    )
    sys.exit(1 if broken or not played["worlds"] else 0)


if __name__ == "__main__":
    main()
