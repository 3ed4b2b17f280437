"""The static encoder beside int8 MiniLM and sentence-transformers: throughput, latency, memory, and
what routing on it earns.

uv run python -m benchmarks.encoder [--quick]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import Progress

from benchmarks.data import Benchmark, load_rows
from benchmarks.played import Played
from benchmarks.report import bootstrap, command, print_figures, print_table
from benchmarks.yardsticks import hindsight
from ground.files.array_folder import Array
from router_state.config import ModelConfig, Prior, RouterConfig
from router_state.profiles import knobs_for
from streams.encoder import general_projection as general_projections
from streams.encoder.distill import COMPONENTS
from streams.encoder.encoder_by_settings import load_encoder, load_sentences
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Backend
from streams.priors.fitted_priors import Priors
from studies.warm_start.fit import fit_priors
from studies.warm_start.observations import Observations

THREADS = 1
BUDGET_USD = 6.62e-4
BUDGETS = (8.3e-5, 2.3e-4, 3.0e-4, 6.62e-4, 1.87e-3, 5.3e-3)
NAMES: dict[Backend, str] = {
    "static": "static",
    "onnx": "int8 MiniLM",
    "sentence-transformers": "sentence-transformers",
}
GENERAL = "static, general projection"
NETWORK = "int8 MiniLM, general projection"
# The sides take turns, so that what else the machine does falls on all alike.
_SLICES = 6
_BLOCK = 20

Embed = Callable[[list[str]], Array]


@command
def main(quick: bool) -> None:
    """Compare three encoders on the benchmark's prompts, one thread each."""
    warm, test = (
        load_rows("val", limit=300 if quick else None),
        load_rows("test", limit=240 if quick else None),
    )
    sides: dict[Backend, Embed] = {
        backend: load_sentences(backend=backend, threads=THREADS).embed for backend in NAMES
    }
    everything = [*warm.prompts, *test.prompts]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Encoding by all", total=len(sides) * len(everything))
        embeddings, rates = measure_throughput(
            sides, everything, lambda done: progress.advance(task, done)
        )
    latencies = measure_latency(sides, test.prompts[: 20 if quick else 300])
    long = " ".join(test.prompts)[:10_000]
    longest = measure_latency(sides, [long] * 5)
    print_table(
        f"Encoder, {len(everything)} prompts, {THREADS} thread",
        ["", "prompts/s", "ms, one prompt", "ms, 10 kB", "peak MiB of a process that encodes"],
        [
            (NAMES[s], rates[s], 1e3 * latencies[s], 1e3 * longest[s], measure_memory(s))
            for s in sides
        ],
    )
    contexts = {NAMES[s]: _contexts(embeddings[s], len(warm)) for s in sides}
    general = load_encoder()
    contexts[GENERAL] = general.encode(warm.prompts), general.encode(test.prompts)
    network = Projection.load(general_projections.GENERAL)
    contexts[NETWORK] = (
        network.project(embeddings["onnx"][: len(warm)]),
        network.project(embeddings["onnx"][len(warm) :]),
    )
    lines = {name: line(warm, test, *both) for name, both in contexts.items()}
    seeds = 10 if quick else 20
    earned = {name: route_all(warm, test, *both, seeds=seeds) for name, both in contexts.items()}
    print_table(
        "Reward: the line of hindsight at each budget; the paper's policy, warm",
        ["", *(f"${budget:.3g}" for budget in BUDGETS), f"routed at ${BUDGET_USD:.3g}"],
        [
            (name, *(f"{reward:.4f}" for reward in lines[name]), str(bootstrap(earned[name])))
            for name in contexts
        ],
    )
    ours, theirs = lines["static"], lines["int8 MiniLM"]
    print_figures(
        "encoder",
        {
            "throughput_ratio": rates["static"] / rates["onnx"],
            "latency_ratio": latencies["static"] / latencies["onnx"],
            "ms_10_kb": 1e3 * longest["static"],
            "reward_ratio": float(np.mean(earned["static"]) / np.mean(earned["int8 MiniLM"])),
            "line_lost": max(b - a for a, b in zip(ours, theirs, strict=True)),
            "line_lost_general": max(b - a for a, b in zip(lines[GENERAL], theirs, strict=True)),
            "line_lost_general_int8": max(
                b - a for a, b in zip(lines[NETWORK], theirs, strict=True)
            ),
            "int8_throughput_ratio": rates["onnx"] / rates["sentence-transformers"],
            "int8_latency_ratio": latencies["onnx"] / latencies["sentence-transformers"],
            "int8_reward_ratio": float(
                np.mean(earned["int8 MiniLM"]) / np.mean(earned["sentence-transformers"])
            ),
        },
    )


def _contexts(embeddings: Array, warm: int) -> tuple[Array, Array]:
    """Return the contexts of the warm-up prompts and of the others, by a projection fitted on the
    former.
    """
    projection = Projection.fit(embeddings[:warm], COMPONENTS)[0]
    return projection.project(embeddings[:warm]), projection.project(embeddings[warm:])


def line(warm: Benchmark, test: Benchmark, before: Array, after: Array) -> list[float]:
    """Return the reward of linear hindsight at each budget."""
    known = replace(warm, contexts=before)
    return [hindsight(known, after, test.rewards, test.costs, budget)[1] for budget in BUDGETS]


def measure_throughput(
    sides: dict[Backend, Embed], prompts: Sequence[str], progress: Callable[[int], None]
) -> tuple[dict[Backend, Array], dict[Backend, float]]:
    """Embed all prompts by each side, in turns; return the embeddings (n, e) and the prompts per
    second.
    """
    embeddings: dict[Backend, Array] = {}
    seconds = dict.fromkeys(sides, 0.0)
    for side, embed in sides.items():
        embeddings[side] = np.empty((len(prompts), embed(list(prompts[:8])).shape[1]))
    for start in range(_SLICES):
        part = list(prompts[start::_SLICES])
        for side, embed in sides.items():
            began = time.perf_counter()
            embeddings[side][start::_SLICES] = embed(part)
            seconds[side] += time.perf_counter() - began
            progress(len(part))
    return embeddings, {side: len(prompts) / seconds[side] for side in sides}


def measure_latency(sides: dict[Backend, Embed], prompts: Sequence[str]) -> dict[Backend, float]:
    """Return the median seconds for one prompt alone; the sides take turns by blocks of prompts."""
    seconds: dict[Backend, list[float]] = {side: [] for side in sides}
    for start in range(0, len(prompts), _BLOCK):
        for side, embed in sides.items():
            for prompt in prompts[start : start + _BLOCK]:
                began = time.perf_counter()
                embed([prompt])
                seconds[side].append(time.perf_counter() - began)
    return {side: float(np.median(seconds[side])) for side in sides}


def route_all(
    warm: Benchmark, test: Benchmark, before: Array, after: Array, *, seeds: int
) -> list[float]:
    """Route every prompt by the paper's policy with priors of the warm-up prompts; return the mean
    reward of each order.
    """
    known = fit_priors(
        Observations(warm.models, before, warm.rewards, warm.costs, warm.prompts),
        projection="",
        ridge=1.0,
    )
    return [_route(known, test, after, seed) for seed in range(seeds)]


def _route(priors: Priors, test: Benchmark, contexts: Array, seed: int) -> float:
    models = {
        model: ModelConfig(price, Prior(A=priors.A[k], b=priors.b[k]))
        for k, (model, price) in enumerate(zip(test.models, test.prices, strict=True))
    }
    knobs = replace(knobs_for("paper"), lambda_c=0.0, seed=seed)
    engine = Played.start(RouterConfig(models, BUDGET_USD, profile="paper", knobs=knobs))
    rewards = []
    for index in np.random.default_rng(seed).permutation(len(test)):
        request_id = str(index)
        k = test.models.index(engine.decide(request_id, contexts[index], now=0.0).model)
        engine.settle(request_id, cost_usd=test.costs[index, k])
        engine.learn(request_id, reward=test.rewards[index, k])
        rewards.append(test.rewards[index, k])
    return float(np.mean(rewards))


def measure_memory(backend: Backend) -> float:
    """Return the peak resident memory, MiB, of a process that loads an encoder and encodes a short
    and a long prompt.
    """
    code = (
        "from streams.encoder.encoder_by_settings import load_encoder; "
        f"load_encoder(backend={backend!r}, threads={THREADS}).encode(['short', 'a long prompt ' "
        "* 300]); "
        "print(open('/proc/self/status').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (peak,) = (line for line in done.stdout.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


if __name__ == "__main__":
    main()
