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
from router_state.attempts.verifier import Declared, Verifier
from router_state.config import ModelConfig, RouterConfig
from router_state.engine import Engine
from router_state.events import Asked, Charged, Judged, Verified
from router_state.profiles import knobs_for
from router_state.record import RequestRecord

SHORT = 16
"""Requests of a round: it is over before a busy machine interrupts it."""
_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

clock = time.perf_counter


@dataclass
class Ours:
    """An engine and its next request's number; `at_once` requests are decided before the events
    that follow them.
    """

    engine: Engine
    feed: Feed
    bills: bool
    at_once: int = 1
    done: int = 0

    @classmethod
    def make(
        cls,
        feed: Feed,
        *,
        d: int,
        budget: float | None,
        profile: str = "paper",
        attempts: int = 0,
        at_once: int = 1,
    ) -> Ours:
        """Return a router that knows nothing yet; with a budget it gets bills, and with `attempts`
        it has a verifier, and plans of so many calls."""
        # The library's own penalty; paced experiments go without.
        given = {"lambda_c": 0.3 if budget is None else 0.0} if profile == "paper" else {}
        knobs = knobs_for(profile, given)
        models = {
            name: ModelConfig(price, onboarding_pulls=0)
            for name, price in prices(len(feed.rewards)).items()
        }
        verifiers = {"attempts": Declared({"tests": Verifier(1e-5)}, attempts)}
        config = RouterConfig(
            models,
            budget,
            d,
            profile,
            knobs,
            capabilities=verifiers if attempts else {},
        )
        return cls(Engine.start(config), feed, budget is not None, at_once)

    def play(self, n: int) -> tuple[float, float]:
        """Decide and learn n requests; return the seconds that decisions and feedback took."""
        engine, feed, deciding, learning = self.engine, self.feed, 0.0, 0.0
        for first in range(self.done, self.done + n, self.at_once):
            decided = []
            for number in range(first, first + self.at_once):
                x, now = feed.contexts[number % len(feed.contexts)], float(number)
                start = clock()
                record = engine.apply(Asked(str(number), x), now).accepted().decision
                deciding += clock() - start
                assert record is not None
                decided.append((number, record))
            for number, record in decided:
                i, request_id, now = number % len(feed.contexts), str(number), float(number)
                reward, cost_usd = feed.rewards[record.model][i], feed.costs[record.model][i]
                start = clock()
                if self.bills:
                    engine.apply(Charged(request_id, cost_usd), now)
                if record.plan is not None:
                    reward = self._try(record, request_id, i, now)
                engine.apply(Judged(request_id, reward), now)
                learning += clock() - start
        self.done += n
        return deciding, learning

    def _try(self, record: RequestRecord, request_id: str, i: int, now: float) -> float:
        """Verify the calls of a plan and bill those after the first; return the last one's reward.
        The verifier passes what is better than 0.7.
        """
        assert record.plan is not None
        engine, feed, reward = self.engine, self.feed, 0.0
        for number, step in enumerate(record.plan.steps):
            if number:
                bill = Charged(request_id, feed.costs[step.model][i], attempt=number)
                engine.apply(bill, now)
            reward = feed.rewards[step.model][i]
            passed = float(reward > 0.7)
            if step.verify is not None:
                engine.apply(Verified(request_id, step.verify, passed, number), now)
            if step.accept_at is None or passed:
                break
        return reward


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
        """Play as `Ours.play` does."""
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


def compare(ours: Ours, theirs: Theirs | Ours, *, rounds: int, n: int = SHORT) -> Rounds:
    """Let both sides play rounds of n requests in turn, after one round to warm up.

    In a round each side plays n requests after the other side and n requests after itself: the
    first of these find the processor's caches full of the other side's data, and take twice as
    long.
    """
    found = Rounds()
    for number in range(rounds + 1):
        seconds = {True: np.zeros(2), False: np.zeros(2)}
        for is_ours in (True, False, False, True):
            seconds[is_ours] += (ours if is_ours else theirs).play(n)
        if number:
            found.ours.append(tuple(seconds[True] / (2 * n)))
            found.theirs.append(tuple(seconds[False] / (2 * n)))
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


def print_by_one(rounds: dict[str, Rounds]) -> None:
    """Print our side beside the library, in each setting."""
    print_table(
        "Core, 3 models, 1 BLAS thread, medians over rounds; µs per decision + feedback",
        ["", "paretobandit", "ours", "ratio"],
        [found.row(title) for title, found in rounds.items()],
    )


def print_live(live: Rounds, eleven: Rounds) -> dict[str, float]:
    """Print what `live` adds to `paper`, and eleven models to three; return the figures."""
    decisions = np.array([[a[0], b[0]] for a, b in zip(live.ours, live.theirs, strict=True)])
    extra_us = 1e6 * float(np.median(decisions[:, 0] - decisions[:, 1]))
    print_table(
        f"A decision under a binding budget (${BINDING_USD:.2e}); µs",
        ["", "paper", "live", "extra"],
        [("decision", *(1e6 * np.median(decisions, axis=0)[::-1]).tolist(), extra_us)],
    )
    sides = (1e6 * np.median(np.sum(side, axis=1)) for side in (eleven.theirs, eleven.ours))
    print_table(
        "A decision with its bill and its reward, live, d 26; µs",
        ["", "3 models", "11 models", "extra"],
        [("one by one", *sides, eleven.extra_us)],
    )
    return {
        "live_extra_us": extra_us,
        "live_extra_ratio": float(np.median(decisions[:, 0] / decisions[:, 1])),
        "live_11_models_extra_us": eleven.extra_us,
    }


def print_attempts(one_by_one: dict[str, Rounds], groups: dict[str, Rounds]) -> dict[str, float]:
    """Print requests of routers with a verifier beside plain ones; return the ratios.

    A plain request has a decision, a bill and a label. With a verifier there are verdicts on most
    answers and bills of second calls as well, and the caches are full of these events' code and
    data when the next request is decided. So a decision is timed in groups, too.
    """
    found: dict[str, dict[str, float]] = {}
    for what, rounds, columns in (
        ("a decision in a group", groups, [0]),
        ("a decision after the events before", one_by_one, [0]),
        ("a request with its events", one_by_one, [0, 1]),
    ):
        rows = []
        for title, one in rounds.items():
            ours, theirs = (np.array(s)[:, columns].sum(axis=1) for s in (one.ours, one.theirs))
            ratio = float(np.median(ours / theirs))
            rows.append((title, 1e6 * np.median(theirs), 1e6 * np.median(ours), ratio))
        found[what] = {row[0]: row[3] for row in rows}
        print_table(
            f"Where there is a verifier: {what}, live, d 26; µs",
            ["", "without", "with", "ratio"],
            rows,
        )
    return {
        f"attempts_{name}_{title.replace(', ', '_').replace(' ', '_')}": ratio
        for name, what in zip(("group_ratio", "ratio", "request_ratio"), found, strict=True)
        for title, ratio in found[what].items()
    }


def with_one_thread() -> None:
    """Start again with one BLAS thread, where that was not asked for."""
    # BLAS reads it when numpy is imported: too late for this process.
    if any(os.environ.get(name) != "1" for name in _THREADS):
        arguments = [sys.executable, "-m", "benchmarks.core", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, **_THREADS})


@command
def main(quick: bool) -> None:
    """Time route and update against paretobandit, the live profile, and many routers."""
    with_one_thread()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rounds = 25 if quick else 100
    small, wide = Feed.make(2000, d=26), Feed.make(1000, d=385)

    def ours(feed: Feed, budget: float | None, profile: str = "live") -> Ours:
        return Ours.make(feed, d=len(feed.contexts[0]), budget=budget, profile=profile)

    def beside(feed: Feed, budget: float | None, profile: str, *, rounds: int) -> Rounds:
        theirs = Theirs.make(feed, d=len(feed.contexts[0]), budget=budget)
        return compare(ours(feed, budget, profile), theirs, rounds=rounds)

    one = beside(small, None, "paper", rounds=4 * rounds)
    paced = beside(small, LOOSE_USD, "paper", rounds=4 * rounds)
    big = beside(wide, None, "paper", rounds=rounds)
    three, paper = ours(small, BINDING_USD), ours(small, BINDING_USD, "paper")
    live = compare(three, paper, rounds=8 * rounds)
    learned = beside(small, BINDING_USD, "live", rounds=8 * rounds)
    learned_wide = beside(wide, BINDING_USD, "live", rounds=rounds)
    many = ours(Feed.make(2000, d=26, K=11), BINDING_USD)
    eleven = compare(many, ours(small, BINDING_USD), rounds=8 * rounds)
    feeds = {3: small, 11: Feed.make(2000, d=26, K=11)}

    def verified(at_once: int) -> dict[str, Rounds]:
        # A verdict leads to second calls, or to third ones as well.
        return {
            f"{K} models, {calls} calls": compare(
                *(
                    Ours.make(
                        feed,
                        d=26,
                        budget=BINDING_USD,
                        profile="live",
                        attempts=attempts,
                        at_once=at_once,
                    )
                    for attempts in (calls, 0)
                ),
                rounds=4 * rounds,
            )
            for K, feed in feeds.items()
            for calls in (2, 3)
        }

    one_by_one, groups = verified(1), verified(SHORT)
    counts = (1, 100, 1_000) if quick else (1, 100, 1_000, 10_000)
    by_count = cost_by_routers(counts, events=2_000 if quick else 20_000)
    print_by_one(
        {
            "d 26": one,
            "d 26, with a budget and bills": paced,
            "d 385": big,
            "d 26, live, with a binding budget and bills": learned,
            "d 385, live, with a binding budget and bills": learned_wide,
        }
    )
    figures = print_live(live, eleven) | print_attempts(one_by_one, groups)
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
            "live_ratio_d26": learned.ratio,
            "live_ratio_d385": learned_wide.ratio,
            **figures,
            "many_routers_ratio": by_count[counts[-1]] / by_count[1],
        },
    )


if __name__ == "__main__":
    main()
