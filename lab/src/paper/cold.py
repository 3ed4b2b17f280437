"""C and D: what priors are worth, from the first test prompt on, without learning on the validation
split first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.contenders import BUDGETS, contender
from paper.data import Data, has
from paper.outcome import Outcome, Sheet
from streams.priors.fitted_priors import Priors

OFFSET, EARLY = 9000, 200
STRENGTHS = (10, 100, 1000)


def warm_up(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Regret to the best model of each prompt, with priors and without (the paper's α .05, ours 20
    pulls of each model).
    """
    sheet, test = Sheet(), data.test
    rng = np.random.default_rng(OFFSET + seed)
    order = rng.permutation(len(test))
    best = test.rewards.max(axis=1)[order]
    for name, budget in BUDGETS.items():
        for prefix, priors in ((name, data.priors), (f"{name} cold", None)):
            for policy in policies:
                router = contender(policy, test, budget=budget, priors=priors, seed=OFFSET + seed)
                outcome = router.run(test.contexts, test.rewards, test.costs, order)
                _regret(sheet, f"{prefix} ", policy, outcome, best)
                sheet.put(f"{prefix} reward", policy, outcome.reward)
                if budget is not None:
                    sheet.put(f"{prefix} cost÷B", policy, outcome.ratio(budget))
    if "paper" in policies:
        chosen = rng.integers(3, size=len(test))
        lost = best - test.rewards[order, chosen]
        sheet.put("U random regret", "here", float(lost.sum()))
        sheet.put("U random R@200", "here", float(lost[:EARLY].sum()))
        sheet.put("U random reward", "here", float(test.rewards[order, chosen].mean()))
    return sheet


def prior_mismatch(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Regret with priors that count for 10, 100 and 1,000 observations, right and wrong; no budget;
    medians over seeds.
    """
    sheet, test = Sheet(), data.test
    order = np.random.default_rng(OFFSET + seed).permutation(len(test))
    best = test.rewards.max(axis=1)[order]
    for policy in policies:
        for kind, priors in {"full": data.priors, **_mismatched(data)}.items():
            for strength in STRENGTHS:
                router = contender(
                    policy,
                    test,
                    budget=None,
                    priors=priors,
                    seed=OFFSET + seed,
                    n_eff=float(strength),
                )
                outcome = router.run(test.contexts, test.rewards, test.costs, order)
                _regret(sheet, f"{kind} n_eff {strength} ", policy, outcome, best)
        for name, knobs in (("cold ", {}), ("cold α .01 ", {"alpha": 0.01})):
            if knobs and policy == "live":
                continue
            router = contender(policy, test, budget=None, priors=None, seed=OFFSET + seed, **knobs)
            _regret(
                sheet,
                name,
                policy,
                router.run(test.contexts, test.rewards, test.costs, order),
                best,
            )
    return sheet


def _mismatched(data: Data) -> dict[str, Priors]:
    """Return priors that do not fit, by name; those that are not the paper's own have another
    name.
    """
    return (
        data.mismatched
        if has("D")
        else {f"near {kind}": priors for kind, priors in data.mismatched.items()}
    )


def _regret(sheet: Sheet, prefix: str, policy: str, outcome: Outcome, best: np.ndarray) -> None:
    lost = best - outcome.rewards
    sheet.put(f"{prefix}regret", policy, float(lost.sum()))
    sheet.put(f"{prefix}R@200", policy, float(lost[:EARLY].sum()))
