"""Run experiments over seeds, two at a time; what is finished is kept on disk, so a run that was
killed goes on.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import click
import orjson

import router_state
from ground.files.atomic_file import replacing
from ground.files.cache_folder import cache_folder
from paper import router
from paper.data import Data, has
from paper.experiments import EXPERIMENTS, THEIRS
from paper.outcome import Sheet
from streams.encoder.sentence_encoder import Backend

PROCESSES = 2
Task = tuple[str, int, tuple[str, ...], Backend]


@lru_cache(maxsize=1)
def _data(encoder: Backend) -> Data:
    return Data(encoder)


def sources(module: ModuleType) -> set[Path]:
    """Return the files of `paper` that a module is made of."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        one = waiting.pop()
        path = Path(one.__file__ or "")
        if path in found:
            continue
        found.add(path)
        names = {
            getattr(value, "__module__", None) or getattr(value, "__name__", "")
            for value in vars(one).values()
        }
        waiting += [
            sys.modules[name]
            for name in names
            if isinstance(name, str) and name.startswith("paper.")
        ]
    return found


def code_digest(name: str, group: tuple[str, ...]) -> str:
    """Return a digest of what decides an experiment's numbers: results of other code are not taken
    from the disk.
    """
    files = sources(sys.modules[EXPERIMENTS[name].run.__module__])
    if group == THEIRS:
        files.discard(Path(router.__file__))
    else:
        core = Path(*router_state.__path__)
        files |= {one for ending in ("py", "pyx", "pxd") for one in core.rglob(f"*.{ending}")}
    digest = hashlib.sha256(version("paretobandit").encode())
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def kept_at(task: Task) -> Path:
    """Return where a task's sheet is kept."""
    name, seed, group, encoder = task
    told = f"{encoder}-{'full' if has(name) else 'part'}"
    return (
        cache_folder("paper", name, code_digest(name, group), told)
        / f"{'-'.join(group)}-{seed}.json"
    )


def _one(task: Task) -> tuple[Task, Sheet]:
    """Run one experiment with one seed for some policies, or take its sheet from the disk."""
    name, seed, group, encoder = task
    target = kept_at(task)
    if target.exists():
        return task, Sheet(**orjson.loads(target.read_bytes()))
    sheet = EXPERIMENTS[name].run(_data(encoder), seed, group)
    with replacing(target) as part:
        part.write_bytes(orjson.dumps(asdict(sheet)))
    return task, sheet


def run(
    names: list[str], seeds: int, encoder: Backend, *, kept_only: bool = False
) -> dict[str, list[Sheet]]:
    """Run experiments over seeds on two processes, then those that measure time; return a sheet per
    seed.

    Args:
        kept_only: run nothing; return the seeds that earlier runs of the same code finished.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    tasks: list[Task] = [
        (name, seed, group, encoder)
        for seed in range(seeds)
        for name in names
        for group in EXPERIMENTS[name].groups
        if seed == 0 or not EXPERIMENTS[name].once
    ]
    found = dict(map(_one, filter(_is_kept, tasks))) if kept_only else _run(tasks)
    return {name: _by_seed(name, found) for name in names}


def _is_kept(task: Task) -> bool:
    return kept_at(task).exists()


def _run(tasks: list[Task]) -> dict[Task, Sheet]:
    together = [task for task in tasks if not EXPERIMENTS[task[0]].alone]
    found: dict[Task, Sheet] = {}
    with get_context("spawn").Pool(PROCESSES) as pool:
        for task, sheet in pool.imap_unordered(_one, together):
            found[task] = sheet
            click.echo(
                f"\r{len(found)}/{len(tasks)} {task[0]}   ",
                err=True,
                nl=len(found) == len(together),
            )
    with get_context("spawn").Pool(1) as pool:
        found |= dict(pool.imap(_one, [task for task in tasks if EXPERIMENTS[task[0]].alone]))
    return found


def _by_seed(name: str, found: Mapping[Task, Sheet]) -> list[Sheet]:
    """Return an experiment's sheets in the order of seeds, of seeds that every group has
    finished.
    """
    parts: dict[int, list[Sheet]] = {}
    for task, sheet in sorted(found.items(), key=lambda one: one[0][1]):
        if task[0] == name:
            parts.setdefault(task[1], []).append(sheet)
    known = EXPERIMENTS[name]
    return [merged(each) for each in parts.values() if len(each) == len(known.groups)]


def merged(parts: list[Sheet]) -> Sheet:
    """Return the sheets of the groups of one seed as one."""
    whole = Sheet()
    for part in parts:
        for row, values in part.rows.items():
            whole.rows.setdefault(row, {}).update(values)
        for curve, lines in part.curves.items():
            whole.curves.setdefault(curve, {}).update(lines)
    return whole
