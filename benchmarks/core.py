"""The decision core against the reference library: microseconds per decision and per reward, both
sides in one run.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.report import command, print_figures, print_table
from benchmarks.traffic import BINDING_USD, LOOSE_USD, PRICES, Feed, prices
from router_state.config import ModelConfig, RouterConfig, knobs_for
from router_state.engine import Engine

BATCH, SHORT = 64, 16  # a short round is over before a busy machine interrupts it
_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

clock = time.perf_counter


@dataclass
class Ours:
    """An engine and its next request's number."""

    engine: Engine
    feed: Feed
    bills: bool
    done: int = 0

    @classmethod
    def make(cls, feed: Feed, *, d: int, budget: float | None, profile: str = "paper") -> Ours:
        """Return a router that knows nothing yet; with a budget it gets bills."""
        knobs = knobs_for(profile, {"lambda_c": 0.3 if budget is None else 0.0})
        models = {
            name: ModelConfig(price, onboarding_pulls=0)
            for name, price in prices(len(feed.rewards)).items()
        }
        config = RouterConfig(
            models=models, budget_usd_per_request=budget, dimensions=d, profile=profile, knobs=knobs
        )
        return cls(Engine.start(config), feed, budget is not None)

    def play(self, n: int) -> tuple[float, float]:
        """Decide and learn n requests, each before the next; return the seconds that decisions and
        feedback took.
        """
        engine, feed, deciding, learning = self.engine, self.feed, 0.0, 0.0
        for number in range(self.done, self.done + n):
            i, request_id, now = number % len(feed.contexts), str(number), float(number)
            x = feed.contexts[i]
            start = clock()
            model = engine.decide(request_id, x, now=now).model
            deciding += clock() - start
            reward, cost_usd = feed.rewards[model][i], feed.costs[model][i]
            start = clock()
            if self.bills:
                engine.settle(request_id, cost_usd=cost_usd)
            engine.learn(request_id, reward=reward)
            learning += clock() - start
        self.done += n
        return deciding, learning

    def play_batch(self, n: int) -> tuple[float, float]:
        """Decide n requests, then learn their rewards; return the seconds of both."""
        rows = [number % len(self.feed.contexts) for number in range(self.done, self.done + n)]
        ids, contexts = (
            [str(number) for number in range(self.done, self.done + n)],
            [self.feed.contexts[i] for i in rows],
        )
        start = clock()
        records = self.engine.decide_many(ids, contexts, now=float(self.done))
        deciding = clock() - start
        rewards = [
            (request_id, self.feed.rewards[record.model][i])
            for request_id, record, i in zip(ids, records, rows, strict=True)
        ]
        start = clock()
        self.engine.learn_many(rewards)
        learning = clock() - start
        self.done += n
        return deciding, learning


@dataclass
class Theirs:
    """The reference library's router, fed the same way."""

    router: Any
    feed: Feed
    done: int = 0

    @classmethod
    def make(cls, feed: Feed, *, d: int, budget: float | None) -> Theirs:
        """Return a router of `paretobandit` that knows nothing yet."""
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.router import BanditRouter

        registry = {
            name: {
                "input_cost_per_m": price.input_price_per_m,
                "output_cost_per_m": price.output_price_per_m,
            }
            for name, price in PRICES.items()
        }
        router = BanditRouter.create(
            model_registry=registry,
            feature_service=FeatureService.for_precomputed(d),
            priors="none",
            bandit_seed=0,
            cost_penalty=0.3 if budget is None else 0.0,
            budget_pacer=None if budget is None else BudgetPacer(budget),
        )
        return cls(router, feed)

    def play(self, n: int) -> tuple[float, float]:
        """As `Ours.play`."""
        router, feed, deciding, learning = self.router, self.feed, 0.0, 0.0
        for number in range(self.done, self.done + n):
            i = number % len(feed.contexts)
            x = feed.contexts[i]
            start = clock()
            model, log = router.route(x)
            deciding += clock() - start
            reward, log.cost_usd = feed.rewards[model][i], feed.costs[model][i]
            start = clock()
            router.process_feedback(log.request_id, reward)
            learning += clock() - start
        self.done += n
        return deciding, learning

    def play_batch(self, n: int) -> tuple[float, float]:
        """As `Ours.play_batch`; the library takes them one by one."""
        rows = [number % len(self.feed.contexts) for number in range(self.done, self.done + n)]
        contexts = [self.feed.contexts[i] for i in rows]
        start = clock()
        decisions = [self.router.route(x) for x in contexts]
        deciding = clock() - start
        rewards = [
            (log.request_id, self.feed.rewards[model][i])
            for (model, log), i in zip(decisions, rows, strict=True)
        ]
        start = clock()
        for request_id, reward in rewards:
            self.router.process_feedback(request_id, reward)
        learning = clock() - start
        self.done += n
        return deciding, learning


@dataclass
class Rounds:
    """Seconds per request of both sides, round by round."""

    ours: list[tuple[float, float]] = field(default_factory=list)
    theirs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The median over rounds of our time over theirs: neighbours in time, so that a busy
        machine slows both.
        """
        return float(np.median(np.sum(self.ours, axis=1) / np.sum(self.theirs, axis=1)))

    @property
    def extra_us(self) -> float:
        """The median over rounds of our time less theirs, microseconds per request."""
        return 1e6 * float(np.median(np.sum(self.ours, axis=1) - np.sum(self.theirs, axis=1)))

    def row(self, title: str) -> tuple[str, str, str, float]:
        """Return the table's row: what, theirs and ours as decision + feedback in microseconds, the
        ratio.
        """
        theirs, ours = (1e6 * np.median(side, axis=0) for side in (self.theirs, self.ours))
        return (
            title,
            f"{theirs[0]:.1f} + {theirs[1]:.1f}",
            f"{ours[0]:.1f} + {ours[1]:.1f}",
            self.ratio,
        )


def compare(
    ours: Ours, theirs: Theirs | Ours, *, rounds: int, n: int, batch: bool = False
) -> Rounds:
    """Let both sides play rounds of n requests in turn, each one by one or as one batch, after two
    rounds to warm up.
    """
    found = Rounds()
    for number in range(rounds + 2):
        pair = ((found.ours, ours), (found.theirs, theirs))
        for seconds, side in pair if number % 2 else pair[::-1]:
            deciding, learning = side.play_batch(n) if batch else side.play(n)
            if number >= 2:
                seconds.append((deciding / n, learning / n))
    return found


def cost_by_routers(counts: Sequence[int], *, events: int) -> dict[int, float]:
    """Return seconds per decision with its reward when that many routers, drawn at random, share
    the process.
    """
    feed = Feed.make(500, d=26)
    routers = [Ours.make(feed, d=26, budget=None) for _ in range(max(counts))]
    for router in routers:
        router.play(2)
    found, rng = {}, np.random.default_rng(0)
    for count in counts:
        spent = []
        for _ in range(5):
            drawn = rng.integers(count, size=events // 5)
            spent.append(sum(sum(routers[k].play(1)) for k in drawn) / len(drawn))
        found[count] = float(np.median(spent))
    return found


@command
def main(quick: bool) -> None:
    """Time route and update against paretobandit one by one and in batches of 64, the live profile,
    and many routers.
    """
    if any(
        os.environ.get(name) != "1" for name in _THREADS
    ):  # BLAS reads it when numpy is imported
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.core", *sys.argv[1:]],
            {**os.environ, **_THREADS},
        )
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rounds = 25 if quick else 100
    small, wide = Feed.make(2000, d=26), Feed.make(1000, d=385)
    one = compare(
        Ours.make(small, d=26, budget=None),
        Theirs.make(small, d=26, budget=None),
        rounds=4 * rounds,
        n=SHORT,
    )
    paced = compare(
        Ours.make(small, d=26, budget=LOOSE_USD),
        Theirs.make(small, d=26, budget=LOOSE_USD),
        rounds=4 * rounds,
        n=SHORT,
    )
    big = compare(
        Ours.make(wide, d=385, budget=None),
        Theirs.make(wide, d=385, budget=None),
        rounds=rounds,
        n=SHORT,
    )
    many = compare(
        Ours.make(small, d=26, budget=None),
        Theirs.make(small, d=26, budget=None),
        rounds=rounds,
        n=BATCH,
        batch=True,
    )
    live = compare(
        Ours.make(small, d=26, budget=BINDING_USD, profile="live"),
        Ours.make(small, d=26, budget=BINDING_USD),
        rounds=8 * rounds,
        n=SHORT,
    )
    learned = compare(
        Ours.make(small, d=26, budget=BINDING_USD, profile="live"),
        Theirs.make(small, d=26, budget=BINDING_USD),
        rounds=8 * rounds,
        n=SHORT,
    )
    learned_wide = compare(
        Ours.make(wide, d=385, budget=BINDING_USD, profile="live"),
        Theirs.make(wide, d=385, budget=BINDING_USD),
        rounds=rounds,
        n=SHORT,
    )
    eleven = compare(
        Ours.make(Feed.make(2000, d=26, K=11), d=26, budget=BINDING_USD, profile="live"),
        Ours.make(small, d=26, budget=BINDING_USD, profile="live"),
        rounds=8 * rounds,
        n=SHORT,
    )
    counts = (1, 100, 1_000) if quick else (1, 100, 1_000, 10_000)
    by_count = cost_by_routers(counts, events=2_000 if quick else 20_000)
    title = "Core, 3 models, 1 BLAS thread, medians over rounds; µs per decision + feedback"
    print_table(
        title,
        ["", "paretobandit", "ours", "ratio"],
        [
            one.row("d 26, one by one"),
            paced.row("d 26, one by one, with a budget and bills"),
            big.row("d 385, one by one"),
            many.row(f"d 26, batches of {BATCH}"),
            learned.row("d 26, live, with a binding budget and bills"),
            learned_wide.row("d 385, live, with a binding budget and bills"),
        ],
    )
    decisions = np.array([[a[0], b[0]] for a, b in zip(live.ours, live.theirs, strict=True)])
    extra_us = 1e6 * float(np.median(decisions[:, 0] - decisions[:, 1]))
    print_table(
        f"A decision under a binding budget (${BINDING_USD:.2e}); µs",
        ["", "paper", "live", "extra"],
        [("decision", *(1e6 * np.median(decisions, axis=0)[::-1]).tolist(), extra_us)],
    )
    print_table(
        "A decision with its bill and its reward, live, d 26; µs",
        ["", "3 models", "11 models", "extra"],
        [
            (
                "one by one",
                *(1e6 * np.median(np.sum(side, axis=1)) for side in (eleven.theirs, eleven.ours)),
                eleven.extra_us,
            )
        ],
    )
    print_table(
        "Routers in the process",
        ["", "µs per decision and reward"],
        [(f"{n:,}", 1e6 * s) for n, s in by_count.items()],
    )
    print_figures(
        "core",
        {
            "ratio_d26": one.ratio,
            "ratio_d26_with_bills": paced.ratio,
            "ratio_d385": big.ratio,
            "ratio_batch64": many.ratio,
            "live_extra_us": extra_us,
            "live_extra_ratio": float(np.median(decisions[:, 0] / decisions[:, 1])),
            "live_ratio_d26": learned.ratio,
            "live_ratio_d385": learned_wide.ratio,
            "live_11_models_extra_us": eleven.extra_us,
            "many_routers_ratio": by_count[counts[-1]] / by_count[1],
        },
    )


if __name__ == "__main__":
    main()
