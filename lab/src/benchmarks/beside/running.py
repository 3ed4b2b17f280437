"""Time of a request, memory and start of a router, each in a process of its own.

python -m benchmarks.beside.running ROUTER     one router, as a line of JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from benchmarks.traffic import BINDING_USD, PRICES, Feed

REQUESTS, WARM, D = 3000, 500, 26
REFERENCE = "paretobandit 0.1.1"
ROUTERS = ("live", "ParetoBandit", REFERENCE, "LinUCB", "LinTS", "Vowpal Wabbit")


def measure(router: str, feed: Feed) -> dict[str, float]:
    """Return a router's µs a request, seconds of CPU from its import to its first decision, and the
    megabytes that this process has grown by."""
    before, began = _resident_mb(), time.process_time()
    play = _reference(feed) if router == REFERENCE else _entrant(router, feed)
    play(1)
    start = time.process_time() - began
    play(WARM)
    timed = time.perf_counter()
    play(REQUESTS)
    us = (time.perf_counter() - timed) / REQUESTS * 1e6
    return {"us": us, "start_s": start, "mb": _resident_mb() - before}


def _resident_mb() -> float:
    return float(psutil.Process().memory_info().rss / 1e6)


def _reference(feed: Feed) -> Callable[[int], object]:
    from benchmarks.core import Theirs

    return Theirs.make(feed, d=D, budget=BINDING_USD).play


def _entrant(router: str, feed: Feed) -> Callable[[int], object]:
    from benchmarks.beside.entrants import ENTRANTS
    from router_state.config import LIVE, ModelConfig, RouterConfig

    entrant = ENTRANTS[router]
    policy = next(iter(entrant.settings.values()))(None, 0, 10.0)
    models = {name: ModelConfig(price, onboarding_pulls=0) for name, price in PRICES.items()}
    policy.declare(RouterConfig(models, BINDING_USD, D, "live", LIVE), at=0)
    done = 0

    def play(n: int) -> None:
        nonlocal done
        for i in range(done, done + n):
            at = i % len(feed.contexts)
            model, _, _ = policy.decide(i, feed.contexts[at])
            policy.settle(i, feed.costs[model][at])
            policy.learn(i, feed.rewards[model][at])
        done += n

    return play


def table() -> str:
    """Return every router's line as Markdown, each measured in a process of its own."""
    lines = ["| router | µs a request | start, s of CPU | MB |", "| --- | --- | --- | --- |"]
    for router in ROUTERS:
        command = [sys.executable, "-m", "benchmarks.beside.running", router]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            lines.append(f"| {router} | not installed |  |  |")
            continue
        found = json.loads(ended.stdout.splitlines()[-1])
        lines.append(
            f"| {router} | {found['us']:.0f} | {found['start_s']:.2f} | {found['mb']:.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Feed.make(WARM + REQUESTS, d=D))))
