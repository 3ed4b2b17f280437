"""The fields by name: those that are shipped, and what a folder of more data holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.beside import code
from benchmarks.beside.field import Field
from benchmarks.data import Benchmark
from benchmarks.elsewhere.real import cold_prompts, eleven
from benchmarks.elsewhere.world import BILLS_LATE, REWARDS_LATE


def _judged(name: str, title: str, judged: Benchmark) -> Field:
    kinds = np.unique(judged.sources, return_inverse=True)[1].astype(np.int64)
    return Field(
        name,
        title,
        judged.models,
        judged.prices,
        judged.contexts,
        kinds,
        judged.rewards,
        judged.costs,
        late=(BILLS_LATE, REWARDS_LATE),
        prompts=judged.prompts,
    )


def _paper(folder: Path | None) -> Field:
    return _judged("paper", "ParetoBandit's 1,824 prompts, three models", cold_prompts())


def _routerbench(folder: Path | None) -> Field:
    assert folder is not None
    return _judged("routerbench", "RouterBench, 3,150 prompts, eleven models", eleven(folder))


FIELDS: dict[str, Callable[[Path | None], Field]] = {
    "code": lambda folder: code.tasks(),
    "agentic": lambda folder: code.agentic(),
    "routerbench": _routerbench,
    "paper": _paper,
}
"""Makers of fields, from a folder of more data; `routerbench` needs one."""


@lru_cache
def load(name: str, folder: Path | None) -> Field:
    """Return a field by its name."""
    return FIELDS[name](folder)
