"""Measure replay in one process: requests per second of verification and of scenarios, beside the
bare engine on the same events.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.history import ROUTER, write_history
from benchmarks.played import Played
from benchmarks.report import command, print_figures, print_table
from benchmarks.traffic import BINDING_USD, NAMES, PRICES, Feed
from studies.history.encoded import Contexts
from studies.history.folders import export, open_folder
from studies.history.happened import Billed, Decided, Declared, Rewarded
from studies.history.merge import Merge
from studies.history.records import History, JsonlHistory
from studies.history.rerun import Remembered, Rerun, configuration
from studies.history.skipped import Skipped
from studies.history.verify import verify
from studies.simulate.scenario import Scenario
from studies.simulate.study import study

THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
D = 26


def made_up_history(folder: Path, *, requests: int, profile: str, outcomes: bool) -> JsonlHistory:
    """Write a router's history over three models with contexts in it, bills after 30 decisions and
    rewards after 100.
    """
    feed = Feed.make(requests, d=D)
    models = {
        name: {"input_price_per_m": p.input_price_per_m, "output_price_per_m": p.output_price_per_m}
        for name, p in PRICES.items()
    }
    write_history(
        folder,
        declared={
            "models": models,
            "budget_usd_per_request": BINDING_USD,
            "profile": profile,
            "dimensions": D,
        },
        models=NAMES,
        contexts=np.array(feed.contexts),
        rewards=np.array([feed.rewards[name] for name in NAMES]).T,
        costs=np.array([feed.costs[name] for name in NAMES]).T,
        outcomes=outcomes,
    )
    return JsonlHistory(folder)


def merged(history: History) -> Merge:
    """Return the history's events in their order."""
    return Merge(history, 0, refused={}, skipped=Skipped(), router_id=ROUTER)


def bare(history: History) -> Callable[[], Any]:
    """Return the engine's calls for every event, with everything decoded beforehand."""
    events = list(merged(history))
    contexts = {
        e.decision.seq: np.array(e.request.context) for e in events if isinstance(e, Decided)
    }

    def run() -> None:
        engine: Played | None = None
        for event in events:
            if isinstance(event, Declared):
                assert event.router is not None
                config = configuration(event.router, offset=event.offset, read_prior=unused)
                engine = Played.start(config, Remembered())
                continue
            assert engine is not None
            if isinstance(event, Decided):
                engine.decide(event.decision.request_id, contexts[event.decision.seq], now=event.at)
            elif isinstance(event, Billed):
                engine.settle(event.bill.request_id, cost_usd=event.bill.cost_usd)
            elif isinstance(event, Rewarded):
                engine.learn(
                    event.reward.subject, reward=event.reward.reward, source=event.reward.source
                )

    return run


def verification(history: History, requests: int) -> Callable[[], Any]:
    """Return a verification from the first byte to the verdict."""

    def run() -> None:
        skipped = Skipped()
        rerun = Rerun(
            contexts=Contexts(unused), rank_of=lambda source: 1, read_prior=unused, skipped=skipped
        )
        verdict = verify(merged(history), rerun)
        assert verdict.identical == requests, "a decision came out otherwise"

    return run


def scenario(history: History, profile: str) -> Callable[[], Any]:
    """Return a simulation of one policy from the first byte to the figures, the survey of the
    history included.
    """
    wanted = Scenario.model_validate({"policies": [profile]})
    return lambda: study(merged(history), wanted, contexts=Contexts(unused), read_prior=unused)


def unused(*_: Any) -> Any:
    """Stand in for what a history with contexts and without priors never calls."""
    raise AssertionError


def rates(
    ways: dict[str, Callable[[], Callable[[], Any]]], *, requests: int, rounds: int
) -> dict[str, float]:
    """Return requests per second of the processor's time: the best of rounds in which all take
    turns, as neighbours disturb.

    Args:
        ways: return what to time; what one has prepared is gone before the next one's turn.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, prepare in ways.items():
            run = prepare()
            gc.collect()
            started = time.process_time()
            run()
            seconds[name].append(time.process_time() - started)
            del run
    return {name: requests / min(spent) for name, spent in seconds.items()}


@command
def main(quick: bool) -> None:
    """Time --verify and --scenario over a history with contexts (d 26, 3 models), profiles paper
    and live, on one core.
    """
    if any(os.environ.get(name) != "1" for name in THREADS):  # BLAS reads it when numpy is imported
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.replay", *sys.argv[1:]],
            {**os.environ, **THREADS},
        )
    gc.set_threshold(1_000_000, 20, 100)
    requests, rounds = (6_000, 4) if quick else (10_000, 10)
    rows: list[tuple[str, str, str]] = []
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as made:
        for profile in ("paper", "live"):
            history = made_up_history(
                Path(made) / profile, requests=requests, profile=profile, outcomes=False
            )
            known = made_up_history(
                Path(made) / f"{profile}-outcomes",
                requests=requests,
                profile=profile,
                outcomes=True,
            )
            export(history, Path(made) / f"{profile}-parquet", form="parquet")
            found = rates(
                {
                    "the bare engine, everything decoded": partial(bare, history),
                    "--verify": partial(verification, history, requests),
                    "--verify, Parquet": partial(
                        verification, open_folder(Path(made) / f"{profile}-parquet"), requests
                    ),
                    "--policy, outcomes known": partial(scenario, known, profile),
                    "--policy, outcomes modelled and estimated": partial(
                        scenario, history, profile
                    ),
                },
                requests=requests,
                rounds=rounds,
            )
            engine = next(iter(found.values()))
            rows += [
                (f"{profile}: {name}", f"{rate:,.0f}", f"{rate / engine:.2f}")
                for name, rate in found.items()
            ]
            keys = ("engine", "verify", "verify_parquet", "policy", "policy_modelled")
            figures |= {
                f"{profile}_{key}_per_s": rate
                for key, rate in zip(keys, found.values(), strict=True)
            }
    title = (
        f"Replay of {requests:,} requests with their bills and rewards, d {D}, K 3, one core; "
        f"best of {rounds} rounds"
    )
    print_table(title, ["", "requests/s", "÷ engine"], rows)
    print_figures("replay", figures)


if __name__ == "__main__":
    main()
