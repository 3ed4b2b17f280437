"""Run experiments over seeds, two at a time; finished ones are kept on disk."""

from __future__ import annotations

import hashlib
import os
from multiprocessing import get_context
from pathlib import Path

import click
import orjson

from benchmarks.data import extended_folder, load_benchmark, wheel_priors
from benchmarks.paper.experiments import EXPERIMENTS, Data, Rows
from streams.atomic_file import replacing
from streams.cache_folder import cache_folder
from streams.encoder import Backend

PROCESSES = 2
_data: Data | None = None


def load(encoder: Backend, *, extended: bool) -> Data:
    """Load the benchmark; `extended`: with the four-model data, where `PB_DATA` names them."""
    folder = extended_folder() if extended else None
    four = None
    if folder is not None:
        four = load_benchmark("val", encoder=encoder, folder=folder), load_benchmark("test", encoder=encoder, folder=folder)
    return Data(load_benchmark("val", encoder=encoder), load_benchmark("test", encoder=encoder), wheel_priors(), four)


def code_digest() -> str:
    """Return a digest of the engine and the experiments: results of other code are not taken from the cache."""
    root = Path(__file__).parents[2]
    own = [Path(__file__).with_name(f"{name}.py") for name in ("experiments", "router")]
    files = [*sorted((root / "router_state").glob("*.py")), *own]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _one(task: tuple[str, int, Backend, str]) -> tuple[str, int, Rows]:
    """Run one experiment with one seed, or take its rows from the cache."""
    global _data  # noqa: PLW0603
    name, seed, encoder, digest = task
    four = "four" if name == "E4" and extended_folder() is not None else "three"
    target = cache_folder("paper", digest, f"{encoder}-{four}") / f"{name}-{seed}.json"
    if target.exists():
        return name, seed, orjson.loads(target.read_bytes())
    if _data is None or (name == "E4" and _data.extended is None):
        _data = load(encoder, extended=name == "E4")
    rows = EXPERIMENTS[name](_data, seed)
    with replacing(target) as part:
        part.write_bytes(orjson.dumps(rows))
    return name, seed, rows


def run(names: list[str], seeds: int, encoder: Backend) -> dict[str, list[Rows]]:
    """Run experiments over seeds on two processes; an interrupted run goes on where it was."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    digest = code_digest()
    tasks = [(name, seed, encoder, digest) for name in names for seed in range(seeds)]
    found: dict[str, list[Rows]] = {name: [] for name in names}
    with get_context("spawn").Pool(PROCESSES) as pool:
        for done, (name, _, rows) in enumerate(pool.imap(_one, tasks), 1):
            found[name].append(rows)
            click.echo(f"\r{done}/{len(tasks)} {name}   ", err=True, nl=done == len(tasks))
    return found
