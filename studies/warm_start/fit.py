"""Fit a projection and warm-up priors of rewards and costs from prompts that were judged or billed
before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ground.files.array_folder import Array
from streams.encoder.sentence_encoder import SentenceEncoder
from streams.priors.fitted_priors import CostPriors, Priors
from studies.warm_start.judgements import (
    JudgedPrompt,
    Reading,
    UnusableJudgements,
    read_judgements,
)
from studies.warm_start.observations import Observations
from studies.warm_start.projecting import Chosen, choose_projection


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The result of a fit: how many prompts, per model rewards and bills with their means, and
    the projection.

    `chosen` is None where no projection was fitted.
    """

    prompts: int
    rewards: Mapping[str, int]
    mean_reward: Mapping[str, float]
    costs: Mapping[str, int]
    mean_cost_usd: Mapping[str, float]
    dimensions: int
    observed: Observations = field(repr=False)
    chosen: Chosen | None = field(default=None, repr=False)


def fit(
    judgements: Path,
    out_dir: Path,
    *,
    sentences: SentenceEncoder,
    reading: Reading | None = None,
    components: int = 25,
    ridge: float = 1.0,
    console: Console | None = None,
) -> FitSummary:
    """Write a projection and priors for every model of a file into `out_dir`.

    Args:
        judgements: rows of prompt, model, cost and score, as CSV or JSON; or lines `{"prompt": …,
            "rewards": {model: r}, "costs": {model: usd}}`, one of the two at least, or `{"prompt":
            …, "arms": {model: {"reward": r, "cost": usd}}}`.
        reading: which columns it has, and of which scale its scores are.
        sentences: the sentence encoder that the workers run.
        components: k; the contexts have d = k + 1 entries.
        ridge: λ_0 > 0 on the design matrices' diagonal.
        console: where the progress bar goes; None: stderr.

    Raises:
        UnusableJudgements: bad lines, or fewer prompts than `components` + 1.
    """
    observed, chosen = observe(
        read_judgements(judgements, reading), sentences, components=components, console=console
    )
    projection = chosen.projection
    summary = fit_observed(observed, out_dir, projection=projection.checksum, ridge=ridge)
    # Written last, so that a folder with a projection has complete priors.
    projection.save(out_dir)
    return replace(summary, chosen=chosen)


def observe(
    judged: Sequence[JudgedPrompt],
    sentences: SentenceEncoder,
    *,
    components: int,
    console: Console | None = None,
) -> tuple[Observations, Chosen]:
    """Encode prompts and fit a projection; return the observations in its coordinates, and the
    projection.

    Raises:
        UnusableJudgements: there are fewer prompts than `components` + 1, or they differ in fewer
            directions.
    """
    # Further components would describe rounding, or a single prompt each.
    if components >= sentences.width:
        raise UnusableJudgements(
            f"{components} components are too many for an embedding of {sentences.width} numbers: "
            f"give --components {min(25, sentences.width - 1)}"
        )
    if components >= len(judged):
        raise UnusableJudgements(
            f"there are {len(judged)} prompts, and {components} components need "
            f"{components + 1} at least: each is a direction in which prompts differ. Give more "
            f"prompts{_or_fewer(len(judged))}"
        )
    embeddings = _embed([row.prompt for row in judged], sentences, console or Console(stderr=True))
    observed = _observations(judged, embeddings)
    outcomes = np.column_stack([observed.rewards, observed.log_costs])
    chosen = choose_projection(embeddings, outcomes, components)
    contexts = chosen.projection.project(embeddings)
    named = replace(chosen.projection, source=sentences.source)
    return (
        replace(observed, contexts=contexts, unseen=chosen.unseen),
        replace(chosen, projection=named),
    )


def _or_fewer(prompts: int) -> str:
    return f", or --components {prompts // 2}" if prompts >= 4 else ""


def fit_observed(
    observed: Observations,
    out_dir: Path,
    *,
    projection: str,
    ridge: float = 1.0,
) -> FitSummary:
    """Write priors for every model that was observed into `out_dir`.

    Args:
        projection: what made the contexts, as priors name it.
        ridge: λ_0 > 0 on the design matrices' diagonal.

    Raises:
        UnusableJudgements: there is neither a reward nor a bill.
    """
    priors = fit_priors(observed, projection=projection, ridge=ridge)
    priors.save(out_dir)
    rewards, costs = (
        {m: v[np.isfinite(v)] for m, v in zip(observed.models, of.T, strict=True)}
        for of in (observed.rewards, observed.costs)
    )
    return FitSummary(
        prompts=len(observed),
        rewards={model: len(rewards[model]) for model in priors.models},
        mean_reward={model: float(rewards[model].mean()) for model in priors.models},
        costs={model: len(values) for model, values in costs.items() if len(values)},
        mean_cost_usd={
            model: float(values.mean()) for model, values in costs.items() if len(values)
        },
        dimensions=priors.dimensions,
        observed=observed,
    )


def fit_priors(observed: Observations, *, projection: str, ridge: float) -> Priors:
    """Return A = ridge·I + Σ xxᵀ and b = Σ reward·x over the prompts that each model answered, and
    the same sums of its bills.

    Raises:
        UnusableJudgements: there is neither a reward nor a bill.
    """
    X, d = observed.contexts, observed.contexts.shape[1]
    rewarded = [k for k in range(len(observed.models)) if np.isfinite(observed.rewards[:, k]).any()]
    A, b = np.empty((len(rewarded), d, d)), np.empty((len(rewarded), d))
    for row, k in enumerate(rewarded):
        known = np.isfinite(observed.rewards[:, k])
        A[row] = ridge * np.eye(d) + X[known].T @ X[known]
        b[row] = observed.rewards[known, k] @ X[known]
    costs = fit_costs(observed)
    if not rewarded and costs is None:
        raise UnusableJudgements("there is neither a reward nor a bill above zero to learn from")
    return Priors(tuple(observed.models[k] for k in rewarded), A, b, projection, costs)


def fit_costs(observed: Observations) -> CostPriors | None:
    """Return the sums over each model's bills above zero, or None where there are none."""
    X = observed.contexts
    billed = [k for k in range(len(observed.models)) if (observed.costs[:, k] > 0.0).any()]
    if not billed:
        return None
    A, b, means = [], [], []
    for k in billed:
        bills = observed.costs[:, k]
        # A bill of zero has no logarithm, but counts in the mean.
        some = bills > 0.0
        A.append(X[some].T @ X[some])
        b.append(np.log(bills[some]) @ X[some])
        means.append(bills[np.isfinite(bills)].mean())
    return CostPriors(
        tuple(observed.models[k] for k in billed), np.stack(A), np.stack(b), np.array(means)
    )


def _observations(judged: Sequence[JudgedPrompt], contexts: Array) -> Observations:
    models = tuple(sorted({model for row in judged for model in (*row.rewards, *row.costs)}))
    nan = float("nan")
    return Observations(
        models,
        contexts,
        np.array([[row.rewards.get(model, nan) for model in models] for row in judged]),
        np.array([[row.costs.get(model, nan) for model in models] for row in judged]),
        [row.prompt for row in judged],
    )


def _embed(prompts: Sequence[str], sentences: SentenceEncoder, console: Console) -> Array:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Encoding prompts", total=len(prompts))
        return sentences.embed(prompts, progress=lambda done: progress.advance(task, done))
