"""Conversations: what a router that knows of sessions and caches saves:
`python -m benchmarks.conversations`, or with `--trace FILE` the lengths and gaps of a recorded one.

Worlds are drawn, see `conversation_worlds`. Every router pays what the provider bills, caches
included; only one is told of sessions. All are played at five budgets between the cheapest and the
dearest model, and compared where they earn what the router without sessions earns. Beside them
stand oracles that know all rewards and costs (`conversation_oracle`).
"""

from __future__ import annotations

import csv
import heapq
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import click
import numpy as np

from benchmarks import conversation_oracle
from benchmarks.conversation_worlds import D, Providers, Turn, World
from benchmarks.played import Played
from router_state.cache_price import CachePrice
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.profiles import knobs_for

BUDGETS = 5
"""Budgets, in equal steps of their logarithm."""
ROUTERS = ("without", "sessions", "pinned")
ORACLES = ("blind", "today", "ahead")


@dataclass(frozen=True, slots=True)
class Run:
    """Mean reward and dollars of one policy at one budget, its budget, and the share cached."""

    reward: float
    usd: float
    budget: float = np.nan
    hits: float = np.nan


def read_trace(path: Path) -> list[Turn]:
    """Read a trace: CSV with the columns session, timestamp (s), input_length and output_length, or
    Mooncake's JSON lines (milliseconds, `hash_ids` of blocks), whose sessions share a prefix."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return sorted(
                Turn(
                    float(row["timestamp"]),
                    row["session"],
                    int(row["input_length"]),
                    int(row["output_length"]),
                )
                for row in csv.DictReader(file)
            )
    last: dict[tuple[int, ...], str] = {}
    found: list[Turn] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            ids = tuple(row["hash_ids"])
            # The last block of a prompt is filled up by the next turn, and so is another one.
            starts = (ids[:size] for size in range(len(ids), 1, -1))
            known = next((start for start in starts if start in last), None)
            session = f"s{len(found)}" if known is None else last.pop(known)
            last[ids[:-1]] = session
            found.append(
                Turn(row["timestamp"] / 1e3, session, row["input_length"], row["output_length"])
            )
    return sorted(found)


def engine(world: World, budget: float, *, told: bool, seed: int) -> Played:
    """Return a router; `told`: it is declared what caches cost."""
    caches = {
        one.name: CachePrice(
            read_per_m=one.read,
            write_per_m=None if one.write == one.into else one.write,
            ttl_seconds=one.ttl_seconds,
            min_tokens=one.min_tokens,
        )
        for one in world.models
    }
    models = {one.name: ModelConfig(Price(one.into, one.out)) for one in world.models}
    knobs = knobs_for("live", {"seed": seed})
    return Played.start(
        RouterConfig(
            models, budget, D, "live", knobs, capabilities={"caches": caches} if told else {}
        )
    )


def played(world: World, budget: float, *, kind: str, seed: int) -> Run:
    """Play one router: `sessions`, `without`, or `pinned` to what it chose at a session's first
    turn."""
    providers, told = Providers(world), kind == "sessions"
    router, pinned = engine(world, budget, told=told, seed=seed), dict[str, str]()
    row = {one.name: k for k, one in enumerate(world.models)}
    due: list[tuple[float, int, Callable[[], object]]] = []
    number, rewards, dollars = count(), [], []
    for i, turn in enumerate(world.turns):
        while due and due[0][0] <= turn.at:
            heapq.heappop(due)[2]()
        allowed = [pinned[turn.session]] if kind == "pinned" and turn.session in pinned else None
        record = router.decide(
            str(i),
            world.contexts[i],
            now=turn.at,
            input_tokens=turn.input_tokens,
            allowed_models=allowed,
            session_id=turn.session if told else None,
        )
        pinned.setdefault(turn.session, record.model)
        reward, usd, cached = providers.call(i, row[record.model])
        bill: Callable[[], object] = partial(
            router.settle, str(i), cost_usd=usd, cached=cached if told else None
        )
        judge: Callable[[], object] = partial(router.learn, str(i), reward=reward)
        due_at = turn.at + world.kind.answer_seconds, turn.at + world.kind.judged_seconds
        heapq.heappush(due, (due_at[0], next(number), bill))
        heapq.heappush(due, (due_at[1], next(number), judge))
        rewards.append(reward)
        dollars.append(usd)
    # The first fifth is for learning; all count alike in what is left.
    skip = len(world.turns) // 5
    hits = providers.read / sum(turn.input_tokens for turn in world.turns)
    return Run(float(np.mean(rewards[skip:])), float(np.mean(dollars[skip:])), budget, hits)


def alone(world: World) -> list[Run]:
    """Return what each model earns and costs that is called always, its cache included."""
    skip, found = len(world.turns) // 5, []
    for k in range(len(world.models)):
        providers = Providers(world)
        calls = [providers.call(i, k) for i in range(len(world.turns))][skip:]
        reward, usd, _ = np.array(calls).mean(0).tolist()
        found.append(Run(reward, usd))
    return found


def dollars_at(reward: float, runs: Sequence[Run | conversation_oracle.Bound]) -> float:
    """Return what a policy costs where it earns this, between its budgets."""
    runs = sorted(runs, key=lambda run: run.usd)
    rewards = np.maximum.accumulate([run.reward for run in runs])
    return float(np.exp(np.interp(reward, rewards, np.log([run.usd for run in runs]))))


def compared(world: World, *, seed: int) -> dict[str, dict[str, float]]:
    """Return every policy's dollars at equal reward: routers' and single models' as shares of the
    router without sessions, oracles' of the oracle that knows no session."""
    singles = alone(world)
    costs = sorted(run.usd for run in singles)
    budgets = np.geomspace(1.2 * costs[0], max(0.8 * costs[-1], 1.3 * costs[0]), BUDGETS)
    play = partial(played, world, seed=seed)
    runs: dict[str, list[Run]] = {
        kind: [play(float(budget), kind=kind) for budget in budgets] for kind in ROUTERS
    }
    at = [run.reward for run in runs["without"][1:-1]]
    found = {
        kind: {
            "dollars": _share(at, these, runs["without"]),
            "reward": float(np.mean([run.reward for run in these])),
            "of_budget": float(np.max([run.usd / run.budget for run in these])),
            "cached": float(np.mean([run.hits for run in these])),
        }
        for kind, these in (runs | {"one model": singles}).items()
    }
    skip = len(world.turns) // 5
    bounds = {kind: conversation_oracle.frontier(world, kind, skip=skip) for kind in ORACLES}
    for kind in ORACLES:
        found[f"oracle {kind}"] = {
            "dollars": _share(at, bounds[kind], bounds["blind"]),
            "of_without": _share(at, bounds[kind], runs["without"]),
        }
    return found


def _share(
    rewards: list[float],
    runs: Sequence[Run | conversation_oracle.Bound],
    others: Sequence[Run | conversation_oracle.Bound],
) -> float:
    """Return the ratio of two policies' dollars, the geometric mean over rewards."""
    ratios = [np.log(dollars_at(r, runs) / dollars_at(r, others)) for r in rewards]
    return float(np.exp(np.mean(ratios)))


def interval(ratios: Sequence[float]) -> str:
    """Return a geometric mean with its 95 % interval over worlds."""
    logs = np.log(ratios)
    half = 2.05 * float(np.std(logs, ddof=1)) / len(logs) ** 0.5 if len(logs) > 1 else np.nan
    mean = float(np.mean(logs))
    return f"{np.exp(mean):.3f} ({np.exp(mean - half):.3f} to {np.exp(mean + half):.3f})"


@click.command()
@click.option("--worlds", default=30, show_default=True)
@click.option("--from", "first", default=0, help="Seed of the first world.")
@click.option("--sessions", default=80, show_default=True, help="Sessions of a world.")
@click.option(
    "--trace",
    "--mooncake",
    "trace",
    type=click.Path(path_type=Path),
    help="CSV or Mooncake's JSON lines.",
)
@click.option("--limit", default=3000, help="Requests of a trace.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a world.")
def main(
    worlds: int, first: int, sessions: int, trace: Path | None, limit: int, as_json: bool
) -> None:
    """Compare routers with and without sessions, one model per session, and oracles."""
    turns = None if trace is None else read_trace(trace)[:limit]
    found, differ = [], []
    for seed in range(first, first + worlds):
        world = World.draw(seed, sessions=sessions, turns=turns)
        found.append(compared(world, seed=seed))
        differ.append((world.kind.of_turn, world.kind.differ, world.kind.first_tokens))
        if as_json:
            click.echo(json.dumps({"seed": seed, "of": differ[-1], **found[-1]}))
    if not as_json:
        report(found, differ)


def report(
    found: list[dict[str, dict[str, float]]], differ: list[tuple[float, float, float]]
) -> None:
    """Write what all worlds came to, and by how turns differ."""
    for kind in found[0]:
        means = {
            name: float(np.mean([one[kind][name] for one in found]))
            for name in ("reward", "of_budget", "cached")
            if np.isfinite(found[0][kind].get(name, np.nan))
        }
        told = "".join(f", {name} {value:.3f}" for name, value in means.items())
        click.echo(f"{kind}: {interval([one[kind]['dollars'] for one in found])}{told}")
        if "of_without" in found[0][kind]:
            ratios = [one[kind]["of_without"] for one in found]
            click.echo(f"  ÷ the router without sessions: {interval(ratios)}")
    pairs = [one["sessions"]["dollars"] / one["pinned"]["dollars"] for one in found]
    click.echo(f"sessions ÷ pinned: {interval(pairs)}")
    for axis, name in enumerate(("share of the turn", "differences of models", "first prompt")):
        values = np.array([row[axis] for row in differ])
        # Where a few values are drawn, by value; else by thirds.
        edges = (
            np.unique(values) if len(set(values)) < 4 else np.quantile(values, [1 / 3, 2 / 3, 1])
        )
        place = np.searchsorted(edges, values)
        for at, edge in enumerate(edges):
            rows = np.flatnonzero(place == at).tolist()
            if rows:
                ratios = [found[i]["sessions"]["dollars"] for i in rows]
                bound = [found[i]["oracle ahead"]["of_without"] for i in rows]
                click.echo(
                    f"{name} up to {edge:.4g}, {len(rows)} worlds: sessions {interval(ratios)}, "
                    f"oracle ahead {interval(bound)}"
                )


if __name__ == "__main__":
    main()
