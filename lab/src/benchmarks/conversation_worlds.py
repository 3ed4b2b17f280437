"""Draw worlds of conversations: providers with caches, sessions with turns, and what models are
good at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

PRICES = {
    "gpt-5-nano": (0.05, 0.005, None, 0.4),
    "gemini-2.5-flash-lite": (0.1, 0.01, None, 0.4),
    "gpt-4o-mini": (0.15, 0.075, None, 0.6),
    "gpt-5-mini": (0.25, 0.025, None, 2.0),
    "deepseek-chat": (0.28, 0.028, None, 0.42),
    "gemini-2.5-flash": (0.3, 0.03, None, 2.5),
    "gpt-4.1-mini": (0.4, 0.1, None, 1.6),
    "kimi-k2": (0.6, 0.15, None, 2.5),
    "claude-haiku-4.5": (1.0, 0.1, 1.25, 5.0),
    "o4-mini": (1.1, 0.275, None, 4.4),
    "gpt-5": (1.25, 0.125, None, 10.0),
    "gpt-4.1": (2.0, 0.5, None, 8.0),
    "gpt-4o": (2.5, 1.25, None, 10.0),
    "claude-sonnet-4.5": (3.0, 0.3, 3.75, 15.0),
    "claude-opus-4.5": (5.0, 0.5, 6.25, 25.0),
}
"""Input, cached input, written input (None: as input) and output, in dollars per million tokens, of
LiteLLM's list of 2026."""
D = 6
"""Dimensions: session, turn, two of noise that tell nothing, the turn's number, the bias."""


class Turn(NamedTuple):
    """One request of a trace."""

    at: float
    session: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Model:
    """One model as it is: prices in dollars per million tokens, its cache, and what it earns.

    Attributes:
        level: mean reward; by_session, by_turn: its slopes in the context's first two entries.
    """

    name: str
    into: float
    read: float
    write: float
    out: float
    ttl_seconds: float
    min_tokens: int
    level: float
    by_session: float
    by_turn: float


@dataclass(frozen=True, slots=True)
class Kind:
    """The conversations of a world.

    Attributes:
        first_tokens: median tokens of a session's first prompt.
        said, answered: median tokens that a turn's prompt and its answer add to the conversation.
        turns: fewest and most turns of a session.
        pause: median seconds between turns; breaks: share of pauses that last some 12 minutes.
        hit: how often a warm cache is hit.
        differ: standard deviation of a model's reward on a prompt around the model's level.
        of_turn: share of this variance that belongs to the turn; the rest belongs to the session.
        answer_seconds, judged_seconds: from a decision to its bill, and to its reward.
    """

    first_tokens: float
    said: float
    answered: float
    turns: tuple[int, int]
    pause: float
    breaks: float
    hit: float
    differ: float
    of_turn: float
    answer_seconds: float
    judged_seconds: float


@dataclass(frozen=True, slots=True)
class World:
    """Models, turns in order of time, and what chance has in store: the same for every router."""

    kind: Kind
    models: tuple[Model, ...]
    turns: list[Turn]
    contexts: np.ndarray
    noise: np.ndarray
    luck: np.ndarray
    wordy: np.ndarray

    @classmethod
    def draw(cls, seed: int, *, sessions: int, turns: list[Turn] | None = None) -> Self:
        """Draw a world; `turns` are those of a recorded trace."""
        rng = np.random.default_rng((seed, 7))
        kind = Kind(
            first_tokens=float(np.exp(rng.uniform(np.log(1000), np.log(30_000)))),
            said=float(np.exp(rng.uniform(np.log(50), np.log(500)))),
            answered=float(np.exp(rng.uniform(np.log(100), np.log(800)))),
            turns=(5, int(rng.integers(10, 51))),
            pause=float(np.exp(rng.uniform(np.log(10), np.log(120)))),
            breaks=float(rng.choice([0.0, 1 / 12, 1 / 5])),
            hit=float(rng.uniform(0.8, 0.99)),
            differ=float(rng.choice([0.03, 0.06, 0.12])),
            of_turn=float(rng.choice([0.1, 0.5, 0.9])),
            answer_seconds=float(rng.choice([2.0, 10.0])),
            judged_seconds=float(rng.choice([5.0, 60.0])),
        )
        models = _models(kind, rng)
        turns = _turns(kind, sessions, rng) if turns is None else turns
        n, K = len(turns), len(models)
        of = {turn.session: rng.normal() for turn in turns}
        own = rng.normal(size=(n, 3))
        since: dict[str, int] = {}
        number = [since.setdefault(turn.session, 0) for turn in turns]
        for i, turn in enumerate(turns):
            number[i] = since[turn.session]
            since[turn.session] += 1
        contexts = np.c_[
            [of[turn.session] for turn in turns], own, np.log1p(number) - 2.0, np.ones(n)
        ]
        return cls(
            kind,
            models,
            turns,
            contexts,
            rng.normal(scale=0.05, size=n),
            rng.random(n),
            np.exp(0.2 * rng.normal(size=(n, K))),
        )

    def expected(self) -> np.ndarray:
        """Return expected rewards, shape (n, K)."""
        slopes = np.array([[one.by_session, one.by_turn] for one in self.models])
        levels = np.array([one.level for one in self.models])
        return np.asarray(levels + self.contexts[:, :2] @ slopes.T)

    def listed(self, k: int) -> float:
        """Return what a call of the k-th model costs on average without a cache."""
        one = self.models[k]
        tokens = float(np.mean([turn.input_tokens for turn in self.turns]))
        answer = float(np.mean([turn.output_tokens for turn in self.turns]))
        return (tokens * one.into + answer * one.out) / 1e6

    def usd(self, i: int, k: int, cached: float) -> float:
        """Return what the k-th model's call at turn i costs, so many of its tokens cached."""
        turn, one = self.turns[i], self.models[k]
        output = turn.output_tokens * float(self.wordy[i, k])
        into = (turn.input_tokens - cached) * one.write + cached * one.read
        return (into + output * one.out) / 1e6


class Providers:
    """The caches of all providers, as one router's calls have left them."""

    def __init__(self, world: World) -> None:
        self.world, self.read = world, 0
        self._warm: dict[tuple[str, int], tuple[int, float]] = {}

    def prefix(self, i: int, k: int) -> int:
        """Return the tokens of turn i that the k-th model has warm."""
        turn, one = self.world.turns[i], self.world.models[k]
        tokens, at = self._warm.get((turn.session, k), (0, -np.inf))
        warm = one.min_tokens <= tokens <= turn.input_tokens and turn.at - at <= one.ttl_seconds
        return tokens if warm else 0

    def call(self, i: int, k: int) -> tuple[float, float, int]:
        """Return reward, dollars and cached tokens of a call, and warm the model's cache."""
        world, turn = self.world, self.world.turns[i]
        cached = self.prefix(i, k) if world.luck[i] < world.kind.hit else 0
        self._warm[turn.session, k] = turn.input_tokens, turn.at
        self.read += cached
        one, x = world.models[k], world.contexts[i]
        mean = one.level + one.by_session * x[0] + one.by_turn * x[1]
        return float(np.clip(mean + world.noise[i], 0.0, 1.0)), world.usd(i, k, cached), cached


def _models(kind: Kind, rng: np.random.Generator) -> tuple[Model, ...]:
    """Draw three to eight models; better ones tend to be dearer."""
    K = int(rng.integers(3, 9))
    names = [str(name) for name in rng.choice(list(PRICES), K, replace=False)]
    names.sort(key=lambda name: 10.0 * PRICES[name][0] + PRICES[name][3])
    levels = np.linspace(rng.uniform(0.5, 0.65), rng.uniform(0.72, 0.85), K)
    levels = np.clip(levels + rng.normal(0.0, 0.03, K), 0.3, 0.9)
    deviations = kind.differ * np.sqrt([1.0 - kind.of_turn, kind.of_turn])
    slopes = rng.normal(size=(K, 2)) * deviations
    found = []
    for k, name in enumerate(names):
        into, read, write, out = PRICES[name]
        # Half of the cached prices are the list's; the others are those that somebody negotiated.
        share = (
            read / into if rng.random() < 0.5 else float(np.exp(rng.uniform(*np.log([0.03, 0.5]))))
        )
        one = Model(
            name,
            into,
            share * into,
            into if write is None else write,
            out,
            float(rng.choice([300.0, 300.0, 3600.0])),
            int(rng.choice([1024, 1024, 4096])),
            float(levels[k]),
            float(slopes[k, 0]),
            float(slopes[k, 1]),
        )
        found.append(one)
    return tuple(found)


def _turns(kind: Kind, sessions: int, rng: np.random.Generator) -> list[Turn]:
    """Draw sessions whose prompts grow by what is said and answered."""
    found: list[Turn] = []
    least, most = kind.turns
    for s in range(sessions):
        at = float(rng.uniform(0.0, 20.0 * sessions))
        tokens = min(int(rng.lognormal(np.log(kind.first_tokens), 0.8)), 100_000)
        for _ in range(int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))):
            tokens += int(rng.lognormal(np.log(kind.said), 0.8))
            out = int(rng.lognormal(np.log(kind.answered), 0.6))
            found.append(Turn(at, f"s{s}", tokens, out))
            tokens += out
            paused = kind.pause if rng.random() >= kind.breaks else 720.0
            at += kind.answer_seconds + float(rng.lognormal(np.log(paused), 0.6))
    return sorted(found)
