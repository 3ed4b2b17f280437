"""Oracles of the benchmark of conversations: they know all rewards and costs, and one of them all
turns to come, by dynamic programming over what is warm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.conversation_worlds import Providers, World

PRICES_TRIED = np.geomspace(0.05, 150.0, 16)
"""Reward per dollar of a list-price call of the middle model, over which a frontier is drawn."""
MOST_STATES = 48
"""States of what is warm that are kept at a turn."""
ROUNDS = 4
"""Rounds in which costs that know of no session are found from the choices that they lead to."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Mean reward and dollars of an oracle at one price of a dollar."""

    reward: float
    usd: float


def frontier(world: World, kind: str, *, skip: int) -> list[Bound]:
    """Return an oracle's frontier: `blind` knows rewards and every model's average cost, `today`
    this call's, `ahead` all turns to come."""
    middle = world.listed(len(world.models) // 2)
    choose = {"blind": _blind, "today": _today, "ahead": _ahead}[kind]
    found = []
    for price in PRICES_TRIED / middle * 0.1:
        chosen = choose(world, float(price))
        providers = Providers(world)
        calls = [providers.call(i, k) for i, k in enumerate(chosen)][skip:]
        found.append(
            Bound(float(np.mean([c[0] for c in calls])), float(np.mean([c[1] for c in calls])))
        )
    return found


def _cold(world: World) -> tuple[np.ndarray, np.ndarray]:
    """Return what input at list price, and output, are expected to cost, shape (n, K)."""
    into = np.array([turn.input_tokens for turn in world.turns])[:, None]
    out = np.array([turn.output_tokens for turn in world.turns])[:, None]
    write, dear = (np.array([getattr(m, name) for m in world.models]) for name in ("write", "out"))
    return into * write / 1e6, out * dear * np.exp(0.02) / 1e6


def _blind(world: World, price: float) -> list[int]:
    rewards, (into, out) = world.expected(), _cold(world)
    share = np.full(len(world.models), 0.5)
    chosen: list[int] = []
    for _ in range(ROUNDS):
        chosen = (rewards - price * (into * share + out)).argmax(1).tolist()
        providers, billed = Providers(world), np.zeros_like(into)
        for i, k in enumerate(chosen):
            one = world.models[k]
            cached = providers.prefix(i, k) * world.kind.hit
            providers.call(i, k)
            billed[i, k] = into[i, k] - cached * (one.write - one.read) / 1e6
        rows = np.arange(len(chosen))
        asked = np.zeros_like(into)
        asked[rows, chosen] = into[rows, chosen]
        total = asked.sum(0)
        seen = total > 0.0
        share[seen] = 0.5 * share[seen] + 0.5 * (billed.sum(0)[seen] / total[seen])
    return chosen


def _today(world: World, price: float) -> list[int]:
    rewards, (into, out) = world.expected(), _cold(world)
    providers, chosen = Providers(world), []
    for i in range(len(world.turns)):
        saved = [
            providers.prefix(i, k) * world.kind.hit * (one.write - one.read) / 1e6
            for k, one in enumerate(world.models)
        ]
        k = int((rewards[i] - price * (into[i] + out[i] - saved)).argmax())
        providers.call(i, k)
        chosen.append(k)
    return chosen


def _ahead(world: World, price: float) -> list[int]:
    """Choose each session's models by dynamic programming over the last call of each."""
    rewards, (into, out) = world.expected(), _cold(world)
    values = rewards - price * (into + out)
    sessions: dict[str, list[int]] = {}
    for i, turn in enumerate(world.turns):
        sessions.setdefault(turn.session, []).append(i)
    chosen = [0] * len(world.turns)
    for rows in sessions.values():
        for i, k in zip(rows, _best_path(world, rows, values, price), strict=True):
            chosen[i] = k
    return chosen


def _best_path(world: World, rows: list[int], values: np.ndarray, price: float) -> list[int]:
    K = len(world.models)
    at = np.array([world.turns[i].at for i in rows])
    tokens = np.array([world.turns[i].input_tokens for i in rows], dtype=float)
    saves = np.array([(one.write - one.read) * world.kind.hit / 1e6 for one in world.models])
    ttl = np.array([one.ttl_seconds for one in world.models])
    least = np.array([one.min_tokens for one in world.models])
    # The last call of each model as a turn, −1: none that is warm.
    last, total = np.full((1, K), -1), np.zeros(1)
    back: list[tuple[np.ndarray, np.ndarray]] = []
    every = np.arange(K)
    for t, i in enumerate(rows):
        gone = (last >= 0) & (at[t] - at[last] > ttl)
        last = np.where(gone, -1, last)
        prefix = np.where(last >= 0, tokens[last], 0.0)
        prefix = np.where(prefix >= least, prefix, 0.0)
        gained = total[:, None] + values[i] + price * prefix * saves
        S = len(last)
        parents, called = np.repeat(np.arange(S), K), np.tile(every, S)
        after = last[parents]
        after[np.arange(S * K), called] = t
        kept = _undominated(after, gained.ravel())
        last, total = after[kept], gained.ravel()[kept]
        back.append((parents[kept], called[kept]))
    state, path = int(total.argmax()), []
    for parents, called in reversed(back):
        path.append(int(called[state]))
        state = int(parents[state])
    return path[::-1]


def _undominated(last: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the states that no better one is at least as warm as, the best ones first."""
    order = np.argsort(-total, kind="stable")
    kept: list[int] = []
    for i in order.tolist():
        if len(kept) == MOST_STATES:
            break
        if not kept or not (last[kept] >= last[i]).all(1).any():
            kept.append(i)
    return np.array(kept)
