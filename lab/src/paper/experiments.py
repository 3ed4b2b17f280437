"""The list of experiments: what each shows, and the functions that run a seed of it and sum the
seeds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.report import Interval
from paper import (
    cold,
    judges,
    latency,
    newcomer,
    phases,
    prices,
    stationary,
    summaries,
    tuning,
)
from paper.contenders import POLICIES
from paper.data import Data
from paper.outcome import Sheet

RunSeed = Callable[[Data, int, Sequence[str]], Sheet]
Summary = Callable[[Sequence[Sheet]], dict[str, dict[str, Interval]]]
OURS, THEIRS = ("paper", "live"), ("reference",)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment.

    Attributes:
        summary: numbers of all seeds together.
        groups: which policies run together; each group and seed is kept on disk by itself.
        once: it has no seeds; alone: it measures time and runs when nothing else does.
        median: over seeds, where the paper prints medians; else the mean.
    """

    title: str
    run: RunSeed
    summary: Summary | None = None
    groups: tuple[tuple[str, ...], ...] = (OURS, THEIRS)
    once: bool = False
    alone: bool = False
    median: bool = False


EXPERIMENTS: dict[str, Experiment] = {
    "E1": Experiment("a constant world under seven budgets", stationary.stationary),
    "E2": Experiment(
        "Gemini's price falls to a 56th, announced, and rises again", phases.cost_drift
    ),
    "E3": Experiment(
        "Mistral silently gets worse, then good again", phases.silent_degradation, phases.troughs
    ),
    "E4": Experiment(
        "a fourth model joins, nothing known of it", newcomer.onboarding, summaries.adoption
    ),
    "A": Experiment(
        "how α, γ and the priors' weight were chosen", tuning.tuning, tuning.chosen_settings
    ),
    "B": Experiment("list prices rank real costs", prices.price_order, groups=(OURS,), once=True),
    "C": Experiment("what priors save from the first request on", cold.warm_up, summaries.warm_up),
    "D": Experiment("priors that do not fit", cold.prior_mismatch, summaries.mismatch, median=True),
    "E": Experiment("other judges", judges.judged, judges.savings),
    "F": Experiment("latency", latency.latency, groups=(POLICIES,), once=True, alone=True),
    "G": Experiment("how deep a fall is recovered from", phases.recovery),
}
