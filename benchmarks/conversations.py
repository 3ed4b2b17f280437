"""Conversations: what a router that knows of sessions and caches saves:
`python -m benchmarks.conversations`, or with `--trace FILE` the lengths and gaps of a recorded one.

Five models at the list prices of 2026, contexts that belong to the session and to the turn, answers
that lengthen the next prompt, pauses of which some are longer than caches last. Every router pays
what the provider bills, caches included; only one is told of sessions. All are played at several
budgets, and compared at equal reward.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from router_state.cache_price import CachePrice
from router_state.config import ModelConfig, Price, RouterConfig, knobs_for
from router_state.engine import Engine

PRICES = {
    "deepseek-chat": (0.28, 0.028, None, 0.42),
    "gpt-5-mini": (0.25, 0.025, None, 2.0),
    "gemini-2.5-flash": (0.30, 0.03, None, 2.5),
    "gpt-5": (1.25, 0.125, None, 10.0),
    "claude-sonnet-4.5": (3.0, 0.30, 3.75, 15.0),
}
"""Input, cached input, written input (None: as input) and output, in dollars per million tokens, of
LiteLLM's list."""
QUALITY = {
    "deepseek-chat": (0.62, -0.05, -0.08),
    "gpt-5-mini": (0.67, 0.0, 0.07),
    "gemini-2.5-flash": (0.67, 0.04, -0.06),
    "gpt-5": (0.76, 0.02, 0.08),
    "claude-sonnet-4.5": (0.80, 0.03, -0.04),
}
"""Mean reward, and its slopes in what belongs to the session and to the turn. Invented."""
TTL_SECONDS, LEAST_CACHED, HIT = 300.0, 1024, 0.95
"""Caches: seconds that they last, tokens from which on, and how often a warm one is hit."""
FIRST_TOKENS = 12_000
"""Median tokens of a session's first prompt: instructions, tools, documents (the public Mooncake
conversation trace has 12,000 on average)."""
SCALES = (0.25, 0.4, 0.65, 1.0, 1.6)
"""Budgets, in multiples of what the third dearest model costs on average without a cache."""
D = 6
"""Dimensions: session, turn, two of noise that tell nothing, the turn's number, the bias."""


class Turn(NamedTuple):
    """One request of a trace."""

    at: float
    session: str
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class Run:
    """Mean reward and dollars of one policy at one budget, the budget, and the share cached."""

    reward: float
    usd: float
    budget: float
    hits: float


def drawn(n: int, *, seed: int) -> list[Turn]:
    """Draw sessions of 5 to 50 turns with growing prompts, in order of time."""
    rng, found = np.random.default_rng(seed), list[Turn]()
    for s in range(n):
        at = float(rng.uniform(0.0, 20.0 * n))
        tokens = min(int(rng.lognormal(np.log(FIRST_TOKENS), 0.8)), 100_000)
        for _ in range(int(np.exp(rng.uniform(np.log(5), np.log(51))))):
            tokens += int(rng.lognormal(5.0, 0.8))
            out = int(rng.lognormal(5.8, 0.6))
            found.append(Turn(at, f"s{s}", tokens, out))
            tokens += out
            # One pause in twelve is a coffee: longer than caches last.
            at += float(
                rng.lognormal(6.6, 0.5) if rng.random() < 1 / 12 else rng.lognormal(3.4, 0.8)
            )
    return sorted(found)


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


class World:
    """Providers with caches, and prompts with contexts; the same for every policy of one seed."""

    def __init__(self, turns: list[Turn], *, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.turns = turns
        kinds = {turn.session: rng.normal() for turn in turns}
        self.contexts = [
            np.array([kinds[turn.session], *rng.normal(size=D - 2), 1.0]) for turn in turns
        ]
        self.noise = rng.normal(scale=0.05, size=len(turns))
        self.lucky = rng.random(len(turns))
        self.wordy = {name: np.exp(0.2 * rng.normal(size=len(turns))) for name in PRICES}
        self.warm: dict[tuple[str, str], tuple[int, float]] = {}
        self.read = 0

    def call(self, i: int, model: str) -> tuple[float, float, int]:
        """Return reward, dollars and cached tokens of a call, and warm the model's cache."""
        turn, x = self.turns[i], self.contexts[i]
        tokens, at = self.warm.get((turn.session, model), (0, -np.inf))
        fits = LEAST_CACHED <= tokens <= turn.input_tokens and turn.at - at <= TTL_SECONDS
        cached = tokens if fits and self.lucky[i] < HIT else 0
        self.warm[turn.session, model] = turn.input_tokens, turn.at
        self.read += cached
        into, read, write, out = PRICES[model]
        written = into if write is None else write
        output = turn.output_tokens * self.wordy[model][i]
        usd = ((turn.input_tokens - cached) * written + cached * read + output * out) / 1e6
        level, session, own = QUALITY[model]
        reward = float(np.clip(level + session * x[0] + own * x[1] + self.noise[i], 0.0, 1.0))
        return reward, usd, cached


def engine(budget: float, *, told: bool, seed: int) -> Engine:
    """Return a router; `told`: it is declared what caches cost."""
    caches = {
        name: CachePrice(read_per_m=read, write_per_m=write, ttl_seconds=TTL_SECONDS)
        for name, (_, read, write, _) in PRICES.items()
    }
    models = {name: ModelConfig(Price(into, out)) for name, (into, _, _, out) in PRICES.items()}
    knobs = knobs_for("live", {"seed": seed})
    return Engine.start(
        RouterConfig(models, budget, D, "live", knobs, caches=caches if told else {})
    )


def played(turns: list[Turn], budget: float, *, kind: str, seed: int) -> Run:
    """Play one policy: `sessions`, `without`, `pinned` to what `without` chose first, or `blind`,
    which is not told of input tokens either."""
    world, told = World(turns, seed=seed), kind == "sessions"
    router, pinned = engine(budget, told=told, seed=seed), dict[str, str]()
    rewards, dollars = [], []
    for i, turn in enumerate(turns):
        allowed = [pinned[turn.session]] if kind == "pinned" and turn.session in pinned else None
        record = router.decide(
            str(i),
            world.contexts[i],
            now=turn.at,
            input_tokens=None if kind == "blind" else turn.input_tokens,
            allowed_models=allowed,
            session_id=turn.session if told else None,
        )
        pinned.setdefault(turn.session, record.model)
        reward, usd, cached = world.call(i, record.model)
        router.settle(str(i), cost_usd=usd, cached=cached if told else None)
        router.learn(str(i), reward=reward)
        del router.records[str(i)]
        router.state.forgotten.requests += 1
        rewards.append(reward)
        dollars.append(usd)
    # The first fifth is for learning; all count alike in what is left.
    skip = len(turns) // 5
    read = world.read / sum(turn.input_tokens for turn in turns)
    return Run(float(np.mean(rewards[skip:])), float(np.mean(dollars[skip:])), budget, read)


def dollars_at(reward: float, runs: list[Run]) -> float:
    """Return what a policy costs where it earns this, between its budgets."""
    runs = sorted(runs, key=lambda run: run.usd)
    rewards = np.maximum.accumulate([run.reward for run in runs])
    return float(np.exp(np.interp(reward, rewards, np.log([run.usd for run in runs]))))


def ratios(turns: list[Turn], *, seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield every policy's dollars at the rewards of the router without sessions, as shares."""
    base = float(np.mean([(t.input_tokens * 0.3 + t.output_tokens * 2.5) / 1e6 for t in turns]))
    play = partial(played, turns, seed=seed)
    runs = {
        kind: [play(scale * base, kind=kind) for scale in SCALES]
        for kind in ("without", "sessions", "pinned", "blind")
    }
    for kind, found in runs.items():
        middle = runs["without"][1:-1]
        yield (
            kind,
            {
                "of_without": float(
                    np.mean([dollars_at(run.reward, found) / run.usd for run in middle])
                ),
                "reward": float(np.mean([run.reward for run in found])),
                "of_budget": float(np.max([run.usd / run.budget for run in found])),
                "cached": float(np.mean([run.hits for run in found])),
            },
        )


def interval(values: list[float]) -> tuple[float, float]:
    """Return a mean and the half width of its 95 % interval (Student's t)."""
    t = {2: 12.7, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36}.get(len(values), 2.0)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), t * spread / len(values) ** 0.5


@click.command()
@click.option("--sessions", default=150, help="Sessions of a seed.")
@click.option("--seeds", default=4)
@click.option(
    "--trace",
    "--mooncake",
    "trace",
    type=click.Path(path_type=Path),
    help="CSV or Mooncake's JSON lines.",
)
@click.option("--limit", default=3000, help="Requests of a trace.")
def main(sessions: int, seeds: int, trace: Path | None, limit: int) -> None:
    """Compare routers with and without sessions, and one model per session."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(seeds):
        turns = drawn(sessions, seed=seed) if trace is None else read_trace(trace)[:limit]
        for kind, figures in ratios(turns, seed=seed):
            found.setdefault(kind, []).append(figures)
    for kind, runs in found.items():
        told = ", ".join(
            f"{name} {mean:.3f} ± {half:.3f}"
            for name in runs[0]
            for mean, half in [interval([run[name] for run in runs])]
        )
        click.echo(f"{kind}: {told}")
    pairs = zip(found["sessions"], found["pinned"], strict=True)
    mean, half = interval([a["of_without"] / b["of_without"] for a, b in pairs])
    click.echo(f"sessions ÷ pinned, dollars at equal reward: {mean:.3f} ± {half:.3f}")


if __name__ == "__main__":
    main()
