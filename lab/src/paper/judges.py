"""E: three judges on the same 2,000 prompts: how far they agree, and whether learning from each
pays.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from benchmarks.report import Interval, bootstrap
from paper.contenders import BUDGETS, contender
from paper.data import Data
from paper.outcome import Sheet, checkpoints
from paper.prices import ranks, spearman

OFFSET, TIES, TEST = 11000, 1_000_000, 2_000_000
GAPS = (0.0, 0.05, 0.1, 0.2, 0.3, np.inf)
MODELS = ("Llama", "Mistral", "Gemini")


def judged(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Regret of a cold start under each judge: 672 prompts to learn from, 1,328 measured; agreement
    of the judges.
    """
    sheet, judges = Sheet(), data.judges
    if judges is None:
        return sheet
    s = OFFSET + seed
    for judge, (val, test) in judges.items():
        order = np.random.default_rng(TEST + s).permutation(len(test))
        best = test.rewards.max(axis=1)[order]
        for name, budget in BUDGETS.items():
            for policy in policies:
                router = contender(policy, val, budget=budget, priors=None, seed=TIES + s)
                router.run(
                    val.contexts,
                    val.rewards,
                    val.costs,
                    np.random.default_rng(s).permutation(len(val)),
                )
                lost = best - router.run(test.contexts, test.rewards, test.costs, order).rewards
                sheet.put(f"{judge} {name} cold regret", policy, float(lost.sum()))
                if budget is None:
                    _draw(sheet, judge, policy, lost)
        if "paper" in policies:
            chosen = np.random.default_rng(s).integers(3, size=len(test))
            lost = best - test.rewards[order, chosen]
            sheet.put(f"{judge} random regret", "here", float(lost.sum()))
            _draw(sheet, judge, "random", lost)
    if "paper" in policies:
        _agreement(
            sheet,
            {
                judge: np.concatenate([val.rewards, test.rewards])
                for judge, (val, test) in judges.items()
            },
        )
    return sheet


def _draw(sheet: Sheet, judge: str, policy: str, lost: np.ndarray) -> None:
    total = np.cumsum(lost)
    sheet.draw(judge, policy, [float(total[at - 1]) for at in checkpoints(len(lost))])


def _agreement(sheet: Sheet, scores: dict[str, np.ndarray]) -> None:
    """Tell how the judges score the same answers, arrays of shape (n, 3)."""
    every = np.arange(len(scores["R1"]))
    for judge, table in scores.items():
        for k, model in enumerate(MODELS):
            sheet.put(f"{judge} mean of {model}", "here", float(table[:, k].mean()))
        sheet.put(
            f"{judge} oracle − best model",
            "here",
            float(table.max(axis=1).mean() - table.mean(axis=0).max()),
        )
    for chooser, table in scores.items():
        # Equal scores go to the first model, as in the paper.
        choice = table.argmax(axis=1)
        for scorer, other in scores.items():
            sheet.put(
                f"oracle of {chooser} scored by {scorer}",
                "here",
                float(other[every, choice].mean()),
            )
    first = scores["R1"].ravel()
    for judge in ("GPT", "Claude"):
        other = scores[judge].ravel()
        difference = other - first
        sheet.put(f"{judge} against R1 ρ", "here", spearman(first, other))
        sheet.put(f"{judge} against R1 τ", "here", kendall(first, other))
        sheet.put(f"{judge} against R1 mean distance", "here", float(np.abs(difference).mean()))
        sheet.put(f"{judge} against R1 bias", "here", float(difference.mean()))
        sheet.put(f"{judge} against R1 lower limit", "here", float(np.quantile(difference, 0.025)))
        sheet.put(f"{judge} against R1 upper limit", "here", float(np.quantile(difference, 0.975)))
        same = scores["R1"].argmax(axis=1) == scores[judge].argmax(axis=1)
        sheet.put(f"{judge} against R1 same best model %", "here", 100.0 * float(same.mean()))
    gap = np.ptp(scores["R1"], axis=1)
    stacked = np.stack(list(scores.values()))
    for least, most in itertools.pairwise(GAPS):
        sheet.put(
            f"Kendall W, gap of R1 from {least:g}",
            "here",
            concordance(stacked[:, (gap >= least) & (gap < most)]),
        )
    sheet.put("Kendall W, all", "here", concordance(stacked))


def kendall(one: np.ndarray, other: np.ndarray) -> float:
    """Return Kendall's τ_b, ties taken into account, from all pairs."""
    concordant, alone, beside = 0.0, 0.0, 0.0
    for i in range(len(one) - 1):
        a, b = np.sign(one[i + 1 :] - one[i]), np.sign(other[i + 1 :] - other[i])
        concordant += float(a @ b)
        alone += float(np.abs(a).sum())
        beside += float(np.abs(b).sum())
    return concordant / float(np.sqrt(alone * beside))


def concordance(scores: np.ndarray) -> float:
    """Return the mean over prompts of Kendall's coefficient of concordance, without correction for
    ties.

    Args:
        scores: shape (judges, n, models).
    """
    m, n, k = scores.shape
    total = np.array([[ranks(scores[j, i]) for i in range(n)] for j in range(m)]).sum(axis=0)
    spread = ((total - total.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return float((12.0 * spread / (m**2 * (k**3 - k))).mean())


def savings(sheets: Sequence[Sheet]) -> dict[str, dict[str, Interval]]:
    """Return what the cold start loses less than chance, per cent, paired by seed."""
    found: dict[str, dict[str, Interval]] = {}
    for row, policies in sheets[0].rows.items():
        if not row.endswith("cold regret"):
            continue
        judge = row.split(maxsplit=1)[0]
        for policy in policies:
            ours, chance = (
                np.array([sheet.rows[name][column] for sheet in sheets])
                for name, column in ((row, policy), (f"{judge} random regret", "here"))
            )
            found.setdefault(row.replace("cold regret", "saved %"), {})[policy] = bootstrap(
                100.0 * (1.0 - ours / chance)
            )
    return found
