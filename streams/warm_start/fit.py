"""Fit a projection and warm-up priors from prompts that were judged offline; needs scikit-learn (extra `reference`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from streams.encoder.encoder import SentenceEncoder
from streams.encoder.projection import Projection
from streams.files.array_folder import Array
from streams.warm_start.priors import Priors, load_priors, prior_for_wire

__all__ = ["FitSummary", "JudgedPrompt", "UnusableJudgements", "fit", "load_priors", "prior_for_wire", "read_judgements"]

_SHOWN_ERRORS = 10


class UnusableJudgements(ValueError):
    """The file cannot be fitted; the message names the lines."""

    reason = "unusable_judgements"
    retriable = False


@dataclass(frozen=True, slots=True)
class JudgedPrompt:
    """One prompt and the reward in [0, 1] of each model that answered it."""

    prompt: str
    rewards: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FitSummary:
    """What was fitted: how many prompts, per model how many rewards and their mean, the variance the projection keeps."""

    prompts: int
    rewards: Mapping[str, int]
    mean_reward: Mapping[str, float]
    dimensions: int
    kept_variance: float


def fit(
    judgements: Path,
    out_dir: Path,
    *,
    sentences: SentenceEncoder,
    components: int = 25,
    ridge: float = 1.0,
    console: Console | None = None,
) -> FitSummary:
    """Write a projection and priors for every model of a JSONL file into `out_dir`.

    Args:
        judgements: lines `{"prompt": …, "rewards": {model: r}}` or `{"prompt": …, "arms": {model: {"reward": r}}}`.
        sentences: the sentence encoder that the workers run.
        components: k; the contexts have d = k + 1 entries.
        ridge: λ_0 > 0 on the design matrices' diagonal.
        console: where the progress bar goes; None: stderr.

    Raises:
        UnusableJudgements: bad lines, or fewer prompts than `components` + 1.
    """
    judged = read_judgements(judgements)
    if not 1 <= components < min(len(judged), sentences.width):
        raise UnusableJudgements(
            f"{components} components need more than {components} prompts (there are {len(judged)}) "
            f"and fewer components than the embedding's width ({sentences.width})"
        )
    embeddings = _embed([row.prompt for row in judged], sentences, console or Console(stderr=True))
    projection, kept = fit_projection(embeddings, components)
    priors = fit_priors(projection, projection.project(embeddings), judged, ridge=ridge)
    projection.save(out_dir)
    priors.save(out_dir)
    rewards = {model: [row.rewards[model] for row in judged if model in row.rewards] for model in priors.models}
    return FitSummary(
        prompts=len(judged),
        rewards={model: len(values) for model, values in rewards.items()},
        mean_reward={model: math.fsum(values) / len(values) for model, values in rewards.items()},
        dimensions=projection.dimensions,
        kept_variance=kept,
    )


def fit_projection(embeddings: Array, components: int) -> tuple[Projection, float]:
    """Fit a principal component analysis; return it and the share of the variance that it keeps."""
    from sklearn.decomposition import PCA

    pca = PCA(components, svd_solver="full").fit(embeddings)
    kept = float(np.sum(pca.explained_variance_ratio_))
    return Projection(pca.mean_, pca.components_, pca.explained_variance_), kept


def fit_priors(projection: Projection, contexts: Array, judged: Sequence[JudgedPrompt], *, ridge: float) -> Priors:
    """Return A = ridge·I + Σ xxᵀ and b = Σ reward·x over the prompts that each model answered, contexts (n, d)."""
    models = tuple(sorted({model for row in judged for model in row.rewards}))
    d = contexts.shape[1]
    A, b = np.empty((len(models), d, d)), np.empty((len(models), d))
    for index, model in enumerate(models):
        answered = [position for position, row in enumerate(judged) if model in row.rewards]
        x, reward = contexts[answered], np.array([judged[position].rewards[model] for position in answered])
        A[index] = ridge * np.eye(d) + x.T @ x
        b[index] = reward @ x
    return Priors(models, A, b, projection.checksum)


def read_judgements(path: Path) -> list[JudgedPrompt]:
    """Read judged prompts, one a line; blank lines are passed over.

    Raises:
        UnusableJudgements: no file, no prompts, or bad lines: the first ten are named with their number and what is wrong.
    """
    judged: list[JudgedPrompt] = []
    errors: list[str] = []
    for number, line in _lines(path):
        try:
            judged.append(_parse(line))
        except UnusableJudgements as wrong:
            errors.append(f"{path}, line {number}: {wrong}")
    if errors:
        more = len(errors) - _SHOWN_ERRORS
        raise UnusableJudgements("\n".join(errors[:_SHOWN_ERRORS] + ([f"… and {more} more"] if more > 0 else [])))
    if not judged:
        raise UnusableJudgements(f"{path} holds no prompts")
    return judged


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as unreadable:
        raise UnusableJudgements(f"{path} cannot be read: {unreadable.strerror}") from unreadable


def _parse(line: bytes) -> JudgedPrompt:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        raise UnusableJudgements("is not UTF-8") from wrong
    except (ValueError, RecursionError) as wrong:
        raise UnusableJudgements(f"is not JSON ({wrong})") from wrong
    if not isinstance(row, dict) or not isinstance(row.get("prompt"), str) or not row["prompt"].strip():
        raise UnusableJudgements('needs "prompt", a text that is not blank')
    rewards = row.get("rewards", row.get("arms"))
    if not isinstance(rewards, dict) or not rewards:
        raise UnusableJudgements('needs "rewards", as {"model": 0.9}, or "arms", as {"model": {"reward": 0.9}}')
    return JudgedPrompt(row["prompt"], {model: _reward(model, value) for model, value in rewards.items()})


def _reward(model: str, value: Any) -> float:
    reward = value.get("reward") if isinstance(value, dict) else value
    if not isinstance(reward, int | float) or isinstance(reward, bool) or not 0.0 <= reward <= 1.0:
        raise UnusableJudgements(f"the reward of {model!r} must be a number from 0 to 1, not {reward!r}")
    return float(reward)


def _embed(prompts: Sequence[str], sentences: SentenceEncoder, console: Console) -> Array:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Encoding prompts", total=len(prompts))
        return sentences.embed(prompts, progress=lambda done: progress.advance(task, done))
