"""Read the paper's benchmark at run time from the installed `paretobandit` wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress

from ground import extras
from ground.files.array_folder import Array
from ground.files.atomic_file import replacing
from ground.files.cache_folder import cache_folder
from ground.json_values import Document
from router_state.config import Price
from streams.encoder.distill import COMPONENTS
from streams.encoder.encoder_by_settings import sentences_of
from streams.encoder.encoder_choice import choose_encoder
from streams.encoder.projection import Projection
from streams.priors.fitted_priors import Priors
from streams.settings import Settings

Split = Literal["test", "val"]

_FILES: dict[Split, str] = {
    "test": "data/examples/test_holdout.jsonl",
    "val": "data/examples/val.jsonl",
}
"""Files of the wheel, by split."""


class MissingData(Exception):
    """The benchmark's data is not installed."""


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """Judged prompts: what each of K models earned and cost on each of n prompts.

    Args:
        models: K names, in the columns' order.
        prices: the models' list prices, in the same order.
        prompts: n texts.
        contexts: shape (n, 26), last entry 1.0.
        rewards: shape (n, K), in [0, 1].
        costs: shape (n, K), US dollars as billed.
        sources: the public data set each prompt is from.
    """

    models: tuple[str, ...]
    prices: tuple[Price, ...]
    prompts: tuple[str, ...]
    contexts: Array
    rewards: Array
    costs: Array
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.prompts)


def load_benchmark(
    split: Split,
    *,
    encoder: str = "onnx",
    projection: Projection | None = None,
    folder: Path | None = None,
    limit: int | None = None,
) -> Benchmark:
    """Load one split, contexts included.

    Args:
        split: "test" (1,824 prompts) or "val" (1,785).
        encoder: the encoder of the prompts, `KIND` or `KIND:NAME`.
        projection: projection of the encoder's embeddings; None: that of `projection_for`.
        folder: holds the files of a portfolio of four models (1,793 and 1,766 prompts); None: the
            wheel's three.
        limit: most prompts that are loaded, the first ones; None: all.

    Raises:
        MissingData: the wheel or a file of `folder` is missing.
    """
    benchmark = load_rows(split, folder=folder, limit=limit)
    projection = projection or projection_for(encoder)
    contexts = projection.project(embed_cached(benchmark.prompts, encoder=encoder))
    return replace(benchmark, contexts=contexts)


def load_rows(split: Split, *, folder: Path | None = None, limit: int | None = None) -> Benchmark:
    """Load one split without encoding anything: its contexts have shape (n, 0). Arguments as in
    `load_benchmark`.
    """
    models = read_models(wheel_folder() / "config/models.json")
    path = wheel_folder() / _FILES[split]
    if folder is not None:
        listed = read_models(folder / "models_k4.json")
        # The wheel's models first: a column means the same in both portfolios.
        models = {name: listed[name] for name in dict.fromkeys((*models, *listed))}
        path = folder / f"{split}_k4.jsonl"
    return read_judged(path, models, limit=limit)


def read_judged(path: Path, models: Mapping[str, Price], *, limit: int | None = None) -> Benchmark:
    """Read judged prompts, their contexts of shape (n, 0): JSON lines with prompt, source and per
    model a reward and a cost.

    Raises:
        MissingData: the file is missing.
    """
    rows = _read_rows(path)[:limit]
    return Benchmark(
        models=tuple(models),
        prices=tuple(models.values()),
        prompts=tuple(str(row["prompt"]) for row in rows),
        contexts=np.empty((len(rows), 0)),
        rewards=np.array(
            [[row["arms"][model]["reward"] for model in models] for row in rows], dtype=np.float64
        ),
        costs=np.array(
            [[row["arms"][model]["cost"] for model in models] for row in rows], dtype=np.float64
        ),
        sources=tuple(str(row["source"]) for row in rows),
    )


def wheel_folder() -> Path:
    """Return the installed `pareto_bandit` package's folder, without importing it.

    Raises:
        MissingData: it is not installed.
    """
    # Located without an import: the package imports much that its data do not need.
    spec = importlib.util.find_spec("pareto_bandit")
    if spec is None or not spec.submodule_search_locations:
        raise MissingData(
            f"the benchmark's data is in the wheel of paretobandit: {extras.command('demo')}"
        )
    return Path(spec.submodule_search_locations[0])


def wheel_projection() -> Projection:
    """Return the wheel's PCA (25 components, whitened by the caller's `project`) as a
    `Projection`.
    """
    pca = _load_joblib("data/artifacts/pca_25.joblib")
    found = (pca.mean_, pca.components_, pca.explained_variance_)
    mean, components, variances = (np.asarray(array, dtype=np.float64) for array in found)
    return Projection(mean, components, variances)


def projection_for(encoder: str) -> Projection:
    """Return the wheel's projection for MiniLM; for another encoder, one fitted on the validation
    prompts.
    """
    # The wheel's PCA is of MiniLM's embeddings; other vectors need directions of their own.
    if encoder in {"onnx", "sentence-transformers"}:
        return wheel_projection()
    return fitted_projection(encoder)


def fitted_projection(encoder: str) -> Projection:
    """Return a projection of an encoder's embeddings that is fitted on the validation prompts."""
    embeddings = embed_cached(load_rows("val").prompts, encoder=encoder)
    return Projection.fit(embeddings, COMPONENTS)[0]


def wheel_priors() -> Priors:
    """Return the wheel's warm-up priors as shipped (8,373 prompts, whitened coordinates), in the
    benchmark's model order.
    """
    shipped = _load_joblib("data/artifacts/priors_k3_25comp.joblib")
    models = tuple(read_models(wheel_folder() / "config/models.json"))
    A, b = (
        np.stack([np.asarray(shipped[name][model], dtype=np.float64) for model in models])
        for name in "Ab"
    )
    return Priors(models, A, b, wheel_projection().checksum)


def embed_cached(prompts: Sequence[str], *, encoder: str = "onnx") -> Array:
    """Embed prompts, shape (n, e); embeddings of a network are kept in the cache folder."""
    sentences = sentences_of(choose_encoder(Settings(), encoder))
    if encoder == "static":
        return sentences.embed(prompts)
    # Keyed by encoder and prompts: another release of either must not find these.
    digest = hashlib.sha256(json.dumps([sentences.identity, list(prompts)]).encode()).hexdigest()
    target = cache_folder("embeddings") / f"{digest}.npy"
    if target.exists():
        return np.asarray(np.load(target, allow_pickle=False), dtype=np.float64)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"Encoding {len(prompts)} prompts ({encoder})", total=len(prompts))
        embeddings = sentences.embed(prompts, progress=lambda done: progress.advance(task, done))
    with replacing(target) as part, part.open("wb") as file:
        np.save(file, embeddings, allow_pickle=False)
    return embeddings


def _load_joblib(name: str) -> Any:
    import joblib

    with warnings.catch_warnings():
        # The artefact was pickled by another scikit-learn; only plain arrays are taken out of it.
        warnings.simplefilter("ignore")
        return joblib.load(wheel_folder() / name)


def _read_rows(path: Path) -> list[Document]:
    try:
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]
    except FileNotFoundError as missing:
        raise MissingData(f"{path} does not exist") from missing


def read_models(path: Path) -> dict[str, Price]:
    """Read a portfolio's list prices, by model.

    Raises:
        MissingData: the file is missing.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["models"]
    except FileNotFoundError as missing:
        raise MissingData(f"{path} does not exist") from missing
    return {
        model["model_id"]: Price(model["input_cost_per_m"], model["output_cost_per_m"])
        for model in listed
    }
