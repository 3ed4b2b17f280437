"""The int8 encoder against sentence-transformers: throughput, latency, memory, and what routing on its contexts earns."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import Progress

from benchmarks.data import Benchmark, load_rows, wheel_priors, wheel_projection
from benchmarks.report import bootstrap, command, print_figures, print_table
from router_state.config import ModelConfig, Prior, RouterConfig, knobs_for
from router_state.engine import Engine
from streams.encoder.load import load_sentences
from streams.encoder.weights import find_weights
from streams.files.array_folder import Array

THREADS = 2
BUDGET_USD = 6.62e-4
# The sides take turns, so that what else the machine does falls on both alike.
_SLICES = 6
_BLOCK = 20

Embed = Callable[[list[str]], Array]


@command
def main(quick: bool) -> None:
    """Compare the int8 encoder with sentence-transformers on the benchmark's prompts, two threads each."""
    benchmark = load_rows("test", limit=240 if quick else None)
    prompts = list(benchmark.prompts)
    sides: dict[str, Embed] = {"sentence-transformers": _reference(), "int8": _int8()}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Encoding by both", total=2 * len(prompts))
        embeddings, rates = measure_throughput(sides, prompts, lambda done: progress.advance(task, done))
    latencies = measure_latency(sides, prompts[: 20 if quick else 300])
    seeds, projection = 100 if quick else 40, wheel_projection()
    rewards = {side: route_all(benchmark, projection.project(embeddings[side]), seeds=seeds) for side in sides}
    memory = measure_memory()
    print_table(
        f"Encoder, {len(prompts)} prompts, {THREADS} threads",
        ["", "prompts/s, batched", "ms, one prompt", f"reward at ${BUDGET_USD:.2e}"],
        [(side, rates[side], 1e3 * latencies[side], str(bootstrap(rewards[side]))) for side in sides],
    )
    ours, theirs = "int8", "sentence-transformers"
    cosines = np.sum(embeddings[ours] * embeddings[theirs], axis=1)
    print_figures(
        "encoder",
        {
            "throughput_ratio": rates[ours] / rates[theirs],
            "latency_ratio": latencies[ours] / latencies[theirs],
            "reward_ratio": float(np.mean(rewards[ours]) / np.mean(rewards[theirs])),
            "cosine_min": float(cosines.min()),
            "cosine_mean": float(cosines.mean()),
            "memory_mib": memory,
        },
    )


def measure_throughput(
    sides: dict[str, Embed], prompts: Sequence[str], progress: Callable[[int], None]
) -> tuple[dict[str, Array], dict[str, float]]:
    """Embed all prompts by each side, in turns; return the embeddings (n, 384) and the prompts per second."""
    embeddings: dict[str, Array] = {side: np.empty((len(prompts), 384)) for side in sides}
    seconds = dict.fromkeys(sides, 0.0)
    for embed in sides.values():
        embed(list(prompts[:8]))
    for start in range(_SLICES):
        part = list(prompts[start::_SLICES])
        for side, embed in sides.items():
            began = time.perf_counter()
            embeddings[side][start::_SLICES] = embed(part)
            seconds[side] += time.perf_counter() - began
            progress(len(part))
    return embeddings, {side: len(prompts) / seconds[side] for side in sides}


def measure_latency(sides: dict[str, Embed], prompts: Sequence[str]) -> dict[str, float]:
    """Return the median seconds for one prompt alone; the sides take turns by blocks of prompts."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for start in range(0, len(prompts), _BLOCK):
        for side, embed in sides.items():
            for prompt in prompts[start : start + _BLOCK]:
                began = time.perf_counter()
                embed([prompt])
                seconds[side].append(time.perf_counter() - began)
    return {side: float(np.median(seconds[side])) for side in sides}


def route_all(benchmark: Benchmark, contexts: Array, *, seeds: int) -> list[float]:
    """Route every prompt by the paper's policy with warm-up priors; return the mean reward under each of `seeds` orders."""
    priors = wheel_priors()
    models = {
        model: ModelConfig(price, Prior(A=priors.A[k], b=priors.b[k]))
        for k, (model, price) in enumerate(zip(benchmark.models, benchmark.prices, strict=True))
    }
    earned = []
    for seed in range(seeds):
        knobs = replace(knobs_for("paper"), lambda_c=0.0, seed=seed)
        engine = Engine.start(RouterConfig(models, BUDGET_USD, profile="paper", knobs=knobs))
        rewards = []
        for index in np.random.default_rng(seed).permutation(len(benchmark)):
            request_id = str(index)
            k = benchmark.models.index(engine.decide(request_id, contexts[index], now=0.0).model)
            engine.settle(request_id, cost_usd=benchmark.costs[index, k])
            engine.learn(request_id, reward=benchmark.rewards[index, k])
            rewards.append(benchmark.rewards[index, k])
        earned.append(float(np.mean(rewards)))
    return earned


def measure_memory() -> float:
    """Return the peak resident memory, MiB, of a process that loads the int8 encoder and encodes a short and a long prompt."""
    code = (
        "from streams.encoder.load import load_encoder; "
        f"load_encoder(backend='onnx', threads={THREADS}).encode(['short', 'a long prompt ' * 300]); "
        "print(open('/proc/self/status').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (peak,) = (line for line in done.stdout.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def _reference() -> Embed:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(THREADS)
    model = SentenceTransformer(str(find_weights()), device="cpu", local_files_only=True)

    def embed(prompts: list[str]) -> Array:
        return np.asarray(model.encode(prompts, normalize_embeddings=True, show_progress_bar=False), dtype=np.float64)

    return embed


def _int8() -> Embed:
    return load_sentences(backend="onnx", threads=THREADS).embed


if __name__ == "__main__":
    main()
