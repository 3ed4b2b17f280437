"""E1: seven budgets between the cheapest and the dearest model's mean cost, nothing changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.contenders import POLICIES, contender
from paper.data import Data
from paper.outcome import Sheet

MODELS = ("Llama", "Mistral", "Gemini")


def stationary(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Learn online over the validation split, unmeasured, then measure on the test split, still
    learning.
    """
    sheet, val, test = Sheet(), data.val, data.test
    means = val.costs.mean(axis=0)
    rng = np.random.default_rng(3000 + seed)
    burn, order = rng.permutation(len(val)), rng.permutation(len(test))
    for budget in np.geomspace(means.min(), means.max(), 7):
        for policy in (name for name in POLICIES if name in policies):
            router = contender(policy, val, budget=float(budget), priors=data.priors, seed=seed)
            router.run(val.contexts, val.rewards, val.costs, burn)
            outcome = router.run(test.contexts, test.rewards, test.costs, order)
            sheet.put(f"${budget:.1e} reward", policy, outcome.reward)
            sheet.put(f"${budget:.1e} cost÷B", policy, outcome.ratio(float(budget)))
            sheet.put(f"${budget:.1e} median λ", policy, float(np.median(outcome.lambdas)))
            for k, model in enumerate(MODELS):
                sheet.put(f"${budget:.1e} {model} %", policy, outcome.share(k))
                sheet.curve(f"{model} %", policy, outcome.share(k))
            sheet.curve("reward", policy, outcome.reward)
            sheet.curve("cost", policy, float(outcome.costs.mean()))
            sheet.curve("budget", policy, float(budget))
    if "paper" in policies:
        _fixed(sheet, test.rewards, test.costs, rng)
    return sheet


def _fixed(sheet: Sheet, rewards: np.ndarray, costs: np.ndarray, rng: np.random.Generator) -> None:
    for k, model in enumerate(MODELS):
        sheet.put(f"always {model} reward", "here", float(rewards[:, k].mean()))
        sheet.curve("fixed reward", "here", float(rewards[:, k].mean()))
        sheet.curve("fixed cost", "here", float(costs[:, k].mean()))
    rows = np.arange(len(rewards))
    best, chosen = rewards.argmax(axis=1), rng.integers(rewards.shape[1], size=len(rewards))
    sheet.put("oracle reward", "here", float(rewards[rows, best].mean()))
    sheet.put("random reward", "here", float(rewards[rows, chosen].mean()))
