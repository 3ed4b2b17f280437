"""A row of a table: what the paper prints, what came out here, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.report import Interval, bootstrap
from paper.experiments import EXPERIMENTS
from paper.outcome import Sheet
from paper.printed import Published
from paper.published import PUBLISHED

# Compared on another machine, so never judged.
MACHINE = ("F",)
# Rows of which less is better, and rows of which more is better, by a part of their name.
LESS = ("regret", "R@200")
MORE = ("reward", "P3÷P1", "÷P1 %", "area")
OVER_BUDGET = 1.05


@dataclass(frozen=True, slots=True)
class Row:
    """One number: as printed, and per policy ("reference", "paper", "live", or "here" without a
    policy) as found.
    """

    experiment: str
    name: str
    printed: Published | None
    found: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def ours(self) -> Interval | None:
        """One thing that is held against the paper: its policy, or a number without a policy."""
        return self.found.get("paper") or self.found.get("here")

    def agrees(self, policy: str | None = None) -> bool | None:
        """Tell whether what was found agrees with the paper: intervals overlap; without a printed
        one, ours or rounding reaches it.

        Returns None where there is nothing to compare.
        """
        found = self.ours if policy is None else self.found.get(policy)
        if self.printed is None or found is None or self.experiment in MACHINE:
            return None
        value, low, high, _ = self.printed
        half = half_digit(self.printed)
        if low is None or high is None:
            return (
                abs(found.mean - value)
                <= max(half, found.high - found.mean, found.mean - found.low) + 1e-12
            )
        return found.low <= high + half and found.high >= low - half

    @property
    def ours_to_explain(self) -> bool:
        """Tell whether the library, run here, reaches the paper's number and the paper profile does
        not.
        """
        return self.agrees() is False and self.agrees("reference") is True

    @property
    def worse(self) -> bool:
        """Tell whether live is worse than paper beyond both intervals: less reward, more regret, or
        further over the budget.
        """
        paper, live = self.found.get("paper"), self.found.get("live")
        if paper is None or live is None or self.experiment in MACHINE:
            return False
        if "saved" in self.name or "sd of" in self.name:
            # Priors save less where a cold start loses less.
            return False
        if any(part in self.name for part in LESS):
            return live.low > paper.high
        if any(part in self.name for part in MORE):
            return live.high < paper.low
        return "cost÷B" in self.name and live.low > max(OVER_BUDGET, paper.high)


def half_digit(printed: Published) -> float:
    """Return half a unit of the last digit that the paper prints."""
    if printed.digits is not None:
        return float(0.5 * 10.0**-printed.digits)
    size = abs(printed.value)
    digits = len(f"{printed.value:.4f}".rstrip("0").partition(".")[2])
    return 0.5 if size >= 100 else float(0.5 * 10.0 ** -max(2 if size < 20 else 1, digits))


def gather(experiment: str, sheets: Sequence[Sheet]) -> list[Row]:
    """Return an experiment's rows over its seeds; none if it could not run."""
    if not sheets:
        return []
    known = EXPERIMENTS[experiment]
    centre = median if known.median else bootstrap
    found: dict[str, dict[str, Interval]] = {}
    for name, policies in sheets[0].rows.items():
        found[name] = {
            policy: _over(centre, [sheet.rows[name][policy] for sheet in sheets])
            for policy in policies
        }
    if known.summary is not None and found:
        found |= known.summary(sheets)
    return [
        Row(experiment, name, PUBLISHED.get(f"{experiment} {name}"), values)
        for name, values in found.items()
    ]


def _over(centre: Callable[[Sequence[float]], Interval], samples: Sequence[float]) -> Interval:
    if len(set(samples)) == 1:
        return Interval(samples[0], samples[0], samples[0])
    return centre(samples)


def median(samples: Sequence[float]) -> Interval:
    """Return the median over seeds with its percentile bootstrap interval."""
    drawn = np.median(np.random.default_rng(0).choice(samples, size=(2000, len(samples))), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(np.median(samples)), float(low), float(high))
