"""Principal components beside partial least squares, and beside what `pbstream fit` chooses: the
live profile with priors of so many prompts, on prompts that were not fitted.

uv run python -m benchmarks.projections [--quick]

The paper's prompts and, where their file is, those of eleven models; the static encoder; bills 30
and rewards 100 requests late. With `newcomer` one model has no prior and was not fitted to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.arena import Array, Episode, play
from benchmarks.data import (
    Benchmark,
    embed_cached,
    load_rows,
    read_judged,
    read_models,
)
from benchmarks.elsewhere.real import ELEVEN, ELEVEN_MODELS, folder_of
from benchmarks.elsewhere.world import BILLS_LATE, REWARDS_LATE, late
from benchmarks.policies import make
from benchmarks.report import command, print_figures, print_table
from benchmarks.rows import Job, cells, gather, outcomes
from router_state.config import LIVE, ModelConfig, RouterConfig
from streams.encoder.projection import Projection
from studies.warm_start.fit import fit_priors
from studies.warm_start.observations import Observations
from studies.warm_start.projecting import choose_projection, fit_supervised, standardised

COMPONENTS = 25
PCA, CHOSEN = "principal components", "chosen"
MEASURED = 1_500
BUDGETS = (1, 3, 5)
"""Positions of budgets among seven between the cheapest model's cost and the dearest one's;
seeds take them in turn."""


@lru_cache
def judged(folder: Path | None) -> tuple[Benchmark, Array]:
    """Return judged prompts, the paper's without a folder, and their embeddings."""
    found = (
        load_rows("val")
        if folder is None
        else read_judged(folder / ELEVEN, read_models(folder / ELEVEN_MODELS))
    )
    return found, embed_cached(found.prompts, encoder="static")


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one file, number of prompts and seed with every projection; return (cost ÷
    budget, reward) by projection, and of the difference to principal components.
    """
    found, embeddings = judged(job["folder"])
    order = np.random.default_rng(job["seed"]).permutation(len(found))
    learned, asked = order[: job["prompts"]], order[job["prompts"] :][:MEASURED]
    known = [k for k in range(len(found.models)) if not job["newcomer"] or k != job["seed"] % 3]
    rewards, costs = found.rewards[learned][:, known], found.costs[learned][:, known]
    targets = np.column_stack([rewards, np.log(np.maximum(costs, 1e-9))])
    E = embeddings[learned]
    ways: dict[str, Callable[[], Projection]] = {PCA: partial(_principal, E)}
    for count in (2, 4, 8):
        ways[f"least squares, {count}"] = partial(_supervised, E, targets, count)
    ways[CHOSEN] = partial(_chosen, E, targets)
    means = found.costs[asked].mean(axis=0)
    budget = np.geomspace(1.3 * means.min(), 0.8 * means.max(), 7)[BUDGETS[job["seed"] % 3]]
    results: dict[str, tuple[float, ...]] = {}
    for name, fit in ways.items():
        projection = fit()
        models = tuple(found.models[k] for k in known)
        priors = fit_priors(
            Observations(models, projection.project(E), rewards, costs, []),
            projection="",
            ridge=1.0,
        )
        configs = {
            model: ModelConfig(price, priors.of(model), cost_prior=priors.of(model).costs)
            if model in models
            else ModelConfig(price)
            for model, price in zip(found.models, found.prices, strict=True)
        }
        X = projection.project(embeddings[asked])
        episode = Episode(
            found.models,
            X,
            found.rewards[asked],
            found.costs[asked],
            {0: RouterConfig(configs, float(budget), X.shape[1], "live", LIVE)},
            late(len(X), BILLS_LATE),
            late(len(X), REWARDS_LATE),
            {name: slice(0, len(X))},
        )
        results |= outcomes(play(make("live", job["seed"]), episode), episode.phases)
    for name in [name for name in results if name != PCA]:
        pairs = zip(results[name], results[PCA], strict=True)
        results[f"{name} − {PCA}"] = tuple(ours - theirs for ours, theirs in pairs)
    return results


def _principal(embeddings: Array) -> Projection:
    return Projection.fit(embeddings, COMPONENTS)[0]


def _chosen(embeddings: Array, targets: Array) -> Projection:
    return choose_projection(embeddings, targets, COMPONENTS).projection


def _supervised(embeddings: Array, targets: Array, count: int) -> Projection:
    return fit_supervised(embeddings, standardised(targets), count)[0]


@command
def main(quick: bool) -> None:
    """Compare projections by what the live profile earns."""
    folder = folder_of(None)
    jobs: list[Job] = [
        {"folder": where, "newcomer": newcomer, "prompts": prompts, "seed": seed}
        for where, newcomer, prompts, seed in product(
            [None] if folder is None else [None, folder],
            [False] if quick else [False, True],
            (60, 500) if quick else (60, 150, 500, 1_500),
            range(3 if quick else 18),
        )
    ]
    rows = gather(one, jobs)
    for r in rows:
        r["models"] = 3 if r.pop("folder") is None else 11
    columns = ("models", "newcomer", "prompts", "phase")
    print_table(
        "live, priors of so many prompts, ± 95 %",
        (*columns, "cost ÷ budget", "reward"),
        cells(rows, *columns),
    )
    gains = [r["reward"] for r in rows if r["phase"] == f"{CHOSEN} − {PCA}"]
    figures = {"gain_mean": float(np.mean(gains)), "gain_least": min(gains)}
    print_figures("projections", figures, rows=rows)


if __name__ == "__main__":
    main()
