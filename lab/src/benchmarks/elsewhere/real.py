"""Judged prompts of others as worlds: the paper's benchmark, and eleven models if their file is
there.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.arena import Array, Rows
from benchmarks.data import (
    EXTENDED_VARIABLE,
    Benchmark,
    MissingData,
    embed_cached,
    read_judged,
    read_models,
    wheel_priors,
    wheel_projection,
)
from benchmarks.elsewhere.made import ordered
from benchmarks.elsewhere.world import BILLS_LATE, REWARDS_LATE, World, late
from benchmarks.protocol import prompts
from commands.demo.paper_models import known_before
from router_state.config import Prior
from streams.encoder.general_projection import GENERAL
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Backend
from streams.encoder.static import SHIPPED

HOME_BUDGETS = (2.3e-4, 3.0e-4, 6.62e-4, 1.87e-3, 5.3e-3)
ELEVEN_BUDGETS = (3e-4, 5e-4, 1e-3, 2e-3, 4e-3)
FIRST, LAST = 400, 1000
CHARACTERS_PER_TOKEN = 4.0
ELEVEN, ELEVEN_MODELS = "eleven_models.jsonl", "models_eleven.json"
BESIDE = Path("../shared/data")


def folder_of(named: Path | None) -> Path | None:
    """Return the folder with the eleven models: the one named, that of PB_DATA, or the one beside
    the clone if it is there.
    """
    given = named or (
        Path(os.environ[EXTENDED_VARIABLE]) if EXTENDED_VARIABLE in os.environ else BESIDE
    )
    return given if (given / ELEVEN).is_file() else None


def _length(texts: tuple[str, ...]) -> Array:
    return np.array([max(1.0, len(text) / CHARACTERS_PER_TOKEN) for text in texts])


@lru_cache
def eleven(folder: Path, encoder: Backend | None = None) -> Benchmark:
    """Load 3,150 prompts of three tasks that eleven models answered, contexts included.

    Args:
        encoder: what makes the contexts, see `cold_prompts`.

    Raises:
        MissingData: the folder does not hold them.
    """
    if not (folder / ELEVEN).is_file():
        raise MissingData(f"{folder / ELEVEN} does not exist")
    judged = read_judged(folder / ELEVEN, read_models(folder / ELEVEN_MODELS))
    return replace(judged, contexts=_contexts(judged.prompts, encoder))


@lru_cache
def cold_prompts(encoder: Backend | None = None) -> Benchmark:
    """Return the paper's held-out prompts.

    Args:
        encoder: what makes the contexts, with the projection that it comes with; None: MiniLM with
            the paper's.
    """
    test = prompts("test")
    return test if encoder is None else replace(test, contexts=_contexts(test.prompts, encoder))


def _contexts(texts: tuple[str, ...], encoder: Backend | None) -> Array:
    if encoder is None:
        return wheel_projection().project(embed_cached(texts))
    shipped = Projection.load(SHIPPED if encoder == "static" else GENERAL)
    return shipped.project(embed_cached(texts, encoder=encoder))


def home(budget: float, seed: int, *, priors: bool, encoder: Backend | None = None) -> World:
    """Return the paper's held-out prompts, cold: nothing was learned before.

    With priors these are the first 400, and the priors what the demo has: those of rewards from the
    wheel, in the coordinates of the paper's projection, and those of costs from the bills of the
    validation prompts.

    Args:
        encoder: what makes the contexts where there are no priors, see `cold_prompts`.
    """
    test = cold_prompts(None if priors else encoder)
    order = np.random.default_rng([19, seed]).permutation(len(test))[: FIRST if priors else None]
    return _world(
        "the paper's, cold, shipped priors" if priors else "the paper's, cold, no priors",
        test,
        order,
        budget,
        seed,
        phases={"first 400" if priors else "whole": slice(0, len(order))},
        priors=_shipped_priors() if priors else {},
    )


@lru_cache
def _shipped_priors() -> dict[str, Prior]:
    known = replace(wheel_priors(), costs=known_before("onnx").costs)
    return {name: known.of(name) for name in known.models}


def eleven_models(
    folder: Path, budget: float, seed: int, *, order: str, encoder: Backend | None = None
) -> World:
    """Eleven models; tasks mixed, one after the other, growing or alternating.

    Args:
        encoder: what makes the contexts, see `cold_prompts`.
    """
    judged = eleven(folder, encoder)
    _, sources = np.unique(judged.sources, return_inverse=True)
    rows = ordered(sources, order, np.random.default_rng([20, seed]))
    n = len(rows)
    phases = {"whole": slice(0, n), "last 1,000": slice(n - LAST, n)}
    mixed_on = {}
    if order == "in turn":
        of_row = np.array(judged.sources)[rows]
        for task in dict.fromkeys(of_row):
            mine = np.flatnonzero(of_row == task)
            end, phase = int(mine[-1]) + 1, f"last third of {task}"
            phases[phase] = slice(int(mine[-(len(mine) // 3)]), end)
            # The best mix of some 140 requests is the best one by chance.
            mixed_on[phase] = slice(int(mine[0]), end)
    world = _world(f"eleven models, {order}", judged, rows, budget, seed, phases=phases, priors={})
    return replace(world, mixed_on=mixed_on)


def _world(
    kind: str,
    judged: Benchmark,
    rows: Rows,
    budget: float,
    seed: int,
    *,
    phases: dict[str, slice],
    priors: dict[str, Prior],
) -> World:
    n = len(rows)
    return World(
        kind=kind,
        name=f"{budget:g}/{seed}",
        models=judged.models,
        prices=judged.prices,
        contexts=judged.contexts[rows],
        rewards=judged.rewards[rows],
        costs=judged.costs[rows],
        budget=budget,
        bill_delay=late(n, BILLS_LATE),
        reward_delay=late(n, REWARDS_LATE),
        phases=phases,
        input_tokens=_length(judged.prompts)[rows],
        priors=priors,
        facts={"budget": budget},
    )
