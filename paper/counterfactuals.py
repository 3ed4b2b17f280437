"""Estimates from a history that knows only the called models, beside the truth: `python -m
paper.counterfactuals`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import numpy as np

from benchmarks.data import Benchmark, load_benchmark, wheel_priors
from benchmarks.history import write_history
from benchmarks.off_policy import compared
from benchmarks.report import print_figures, print_table
from streams.encoder.sentences import Backend
from studies.simulate.simulation import PolicyRun

BUDGET = 6.62e-4
KINDS = ("direct", "inverse propensity", "doubly robust")


def estimate(
    data: Benchmark, *, epsilon: float, requests: int
) -> list[tuple[str, PolicyRun, float]]:
    """Record a history with this exploration rate, and return per policy its estimates and the
    truth.
    """
    order = np.resize(np.random.default_rng(1).permutation(len(data)), requests)
    contexts, rewards, costs = data.contexts[order], data.rewards[order], data.costs[order]
    priors = wheel_priors()
    models = {
        model: {
            "input_price_per_m": price.input_price_per_m,
            "output_price_per_m": price.output_price_per_m,
            "prior": {"A": priors.A[k].tolist(), "b": priors.b[k].tolist()},
        }
        for k, (model, price) in enumerate(zip(data.models, data.prices, strict=True))
    }
    declared = {"models": models, "budget_usd_per_request": BUDGET, "epsilon": epsilon}
    policies = (*data.models, "random", "paper", "live")
    with tempfile.TemporaryDirectory() as folder:
        write_history(
            Path(folder),
            declared=declared,
            models=data.models,
            contexts=contexts,
            rewards=rewards,
            costs=costs,
            outcomes=False,
        )
        found = compared(Path(folder), policies, truth=(rewards,), models=data.models)
    return [(name, run, true) for name, run, (true,) in found]


@click.command()
@click.option("--requests", type=click.IntRange(500), default=7296, show_default=True)
@click.option(
    "--encoder",
    type=click.Choice(["sentence-transformers", "onnx"]),
    default="sentence-transformers",
    show_default=True,
)
def main(requests: int, encoder: Backend) -> None:
    """Print estimates of mean rewards beside the truth, for histories with and without
    exploration.
    """
    data = load_benchmark("test", encoder=encoder)
    figures: dict[str, float] = {}
    for epsilon in (0.0, 0.1, 0.3):
        rows = []
        covered = weighted = 0
        for name, run, truth in estimate(data, epsilon=epsilon, requests=requests):
            found = run.reward.estimates()
            robust = found.get("doubly robust")
            if robust is not None and robust.half_width is not None:
                weighted += 1
                covered += abs(robust.value - truth) <= robust.half_width
            cells = (str(found.get(kind, "not supported")) for kind in KINDS)
            rows.append(
                [name.rpartition("/")[2], f"{truth:.4f}", *cells, f"{run.reward.effective:,.0f}"]
            )
        print_table(
            f"History of {requests:,} requests with ε = {epsilon:g}",
            ["policy", "truth", *KINDS, "effective n"],
            rows,
        )
        figures[f"supported_at_{epsilon:g}"] = weighted
        figures[f"covered_at_{epsilon:g}"] = covered
    print_figures("counterfactuals", figures)


if __name__ == "__main__":
    main()
