"""Summaries that take all seeds together: spreads, differences by seed, and in how many seeds
something happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.report import Interval, bootstrap
from paper.contenders import BUDGETS
from paper.outcome import Sheet

Found = dict[str, dict[str, Interval]]
RESAMPLES = 2000


def adoption(sheets: Sequence[Sheet]) -> Found:
    """Return per newcomer and budget in how many seeds it was adopted, per cent, and when in the
    mean of those.
    """
    found: Found = {}
    for row, policies in sheets[0].rows.items():
        if not row.endswith("adopted at"):
            continue
        for policy in policies:
            steps = _all(sheets, row, policy)
            found.setdefault(row.replace("adopted at", "seeds adopted %"), {})[policy] = share(
                steps > 0
            )
            if (steps > 0).any():
                found.setdefault(row.replace("adopted at", "mean step"), {})[policy] = bootstrap(
                    steps[steps > 0]
                )
    return found


def warm_up(sheets: Sequence[Sheet]) -> Found:
    """Return spreads, what priors save (paired by seed), and how many cold runs lose more than
    twice the pooled median.
    """
    found: Found = {}
    for name in BUDGETS:
        for policy in sheets[0].rows[f"{name} regret"]:
            warm, cold = (_all(sheets, f"{name}{kind} regret", policy) for kind in ("", " cold"))
            early = [_all(sheets, f"{name}{kind} R@200", policy) for kind in ("", " cold")]
            found.setdefault(f"{name} sd of regret", {})[policy] = resampled(warm, np.std)
            found.setdefault(f"{name} cold sd of regret", {})[policy] = resampled(cold, np.std)
            found.setdefault(f"{name} saved regret", {})[policy] = bootstrap(cold - warm)
            found.setdefault(f"{name} saved R@200", {})[policy] = bootstrap(early[1] - early[0])
            bar = 2.0 * float(np.median(np.concatenate([warm, cold])))
            found.setdefault(f"{name} cold seeds over 2 × median %", {})[policy] = share(cold > bar)
    return found


def mismatch(sheets: Sequence[Sheet]) -> Found:
    """Return in how many seeds a prior beats the cold start of the same policy, per cent."""
    found: Found = {}
    for row, policies in sheets[0].rows.items():
        if "n_eff" not in row or not row.endswith("regret"):
            continue
        for policy in policies:
            won = _all(sheets, row, policy) < _all(sheets, "cold regret", policy)
            found.setdefault(row.replace("regret", "seeds won %"), {})[policy] = share(won)
    for policy in sheets[0].rows["cold α .01 regret"]:
        found.setdefault("cold α .01 mean regret", {})[policy] = bootstrap(
            _all(sheets, "cold α .01 regret", policy)
        )
    return found


def share(happened: np.ndarray, *, z: float = 1.96) -> Interval:
    """Return how often something happened, per cent, with Wilson's 95 % interval."""
    n, rate = len(happened), float(happened.mean())
    centre, scale = rate + z**2 / (2 * n), 1.0 + z**2 / n
    half = z * float(np.sqrt(rate * (1.0 - rate) / n + z**2 / (4 * n**2)))
    return Interval(
        100.0 * rate,
        100.0 * max(0.0, (centre - half) / scale),
        100.0 * min(1.0, (centre + half) / scale),
    )


def resampled(values: np.ndarray, statistic: Callable[[np.ndarray], float]) -> Interval:
    """Return a statistic over seeds with its percentile bootstrap interval."""
    rng = np.random.default_rng(0)
    drawn = [
        statistic(values[rng.integers(len(values), size=len(values))]) for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(statistic(values)), float(low), float(high))


def _all(sheets: Sequence[Sheet], row: str, policy: str) -> np.ndarray:
    return np.array([sheet.rows[row][policy] for sheet in sheets])
