"""E2, E3 and G: three phases. The first 608 prompts of a fixed permutation of the test split are
phases 1 and 3, the next 608 phase 2; a seed shuffles each. Before them the whole validation split,
unmeasured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.report import Interval
from paper.contenders import (
    BUDGETS,
    FINITE,
    GEMINI,
    MISTRAL,
    PHASE,
    THEIRS,
    Contender,
    contender,
)
from paper.data import Data
from paper.outcome import Outcome, Sheet, checkpoints, joined, moving
from paper.refit import CUT, CUT_FACTOR, STATIC_LAMBDA, refitted

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85)
Change = Callable[[Contender], None]


@dataclass(slots=True)
class Phases:
    """The orders of a seed and what holds in each phase; `third`: rows of phase 3, shuffled."""

    data: Data
    burn: np.ndarray
    orders: list[np.ndarray]
    rewards: np.ndarray
    costs: np.ndarray
    changes: dict[int, Change] = field(default_factory=dict)

    def run(self, router: Contender) -> list[Outcome]:
        """Return what each phase brought."""
        val, test = self.data.val, self.data.test
        router.run(val.contexts, val.rewards, val.costs, self.burn)
        brought = []
        for number, order in enumerate(self.orders, 1):
            if number in self.changes:
                self.changes[number](router)
            rewards, costs = (
                (self.rewards, self.costs) if number == 2 else (test.rewards, test.costs)
            )
            brought.append(router.run(test.contexts, rewards, costs, order))
        return brought


def phases_of(
    data: Data,
    offset: int,
    seed: int,
    *,
    rewards: np.ndarray,
    costs: np.ndarray,
    longer: bool = False,
) -> Phases:
    """Return the phases of a seed; `longer`: phase 3 has every prompt that is not in phase 2."""
    split = np.random.default_rng(42).permutation(len(data.test))
    one, two = split[:PHASE], split[PHASE : 2 * PHASE]
    three = np.concatenate([one, split[2 * PHASE :]]) if longer else one
    rng = np.random.default_rng(offset + seed)
    return Phases(
        data,
        rng.permutation(len(data.val)),
        [rng.permutation(part) for part in (one, two, three)],
        rewards,
        costs,
    )


def _variants(budget: str) -> dict[str, dict[str, float]]:
    """Return the knobs of the paper's own baselines without a pacer, with and without
    forgetting.
    """
    fixed = {"lambda_c": STATIC_LAMBDA[budget]}
    return {"naive": {**fixed, "gamma": 1.0}, "forgetting": fixed}


def cost_drift(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Gemini costs a 56th in phase 2, announced, and its old price again in phase 3."""
    sheet, test = Sheet(), data.test
    costs = test.costs.copy()
    costs[:, GEMINI] *= CUT_FACTOR
    phases = phases_of(data, 8000, seed, rewards=test.rewards, costs=costs)
    gemini, old = test.models[GEMINI], test.prices[GEMINI]
    reprice: dict[int, Change] = {
        2: lambda router: router.reprice(gemini, CUT),
        3: lambda router: router.reprice(gemini, old),
    }
    for name, budget in BUDGETS.items():
        for policy in policies:
            phases.changes = reprice
            brought = phases.run(
                contender(policy, data.val, budget=budget, priors=data.priors, seed=seed)
            )
            _record(sheet, name, policy, brought, GEMINI, budget)
            if budget is not None:
                sheet.put(f"{name} lift P2−P1", policy, brought[1].reward - brought[0].reward)
            if policy not in THEIRS or budget is None:
                continue
            for variant, knobs in {
                **_variants(name),
                "recalibrated": _variants(name)["naive"],
            }.items():
                if variant == "recalibrated":
                    phases.changes = _refitting(reprice, refitted(data)[name])
                router = contender(
                    policy, data.val, budget=None, priors=data.priors, seed=seed, **knobs
                )
                _baseline(sheet, f"{name} {variant}", policy, phases.run(router), GEMINI, budget)
    return sheet


def _refitting(reprice: dict[int, Change], penalties: tuple[float, float]) -> dict[int, Change]:
    def both(number: int) -> Change:
        def change(router: Contender) -> None:
            reprice[number](router)
            router.penalise(penalties[number - 2])

        return change

    return {2: both(2), 3: both(3)}


def silent_degradation(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Every answer of Mistral earns 0.75 in phase 2; its price stays."""
    sheet, test = Sheet(), data.test
    worse = test.rewards.copy()
    worse[:, MISTRAL] = 0.75
    phases = phases_of(data, 6000, seed, rewards=worse, costs=test.costs)
    for name, budget in BUDGETS.items():
        for policy in policies:
            brought = phases.run(
                contender(policy, data.val, budget=budget, priors=data.priors, seed=seed)
            )
            _record(sheet, name, policy, brought, MISTRAL, budget)
            sheet.put(f"{name} P3÷P1", policy, brought[2].reward / brought[0].reward)
            if policy not in THEIRS or budget is None:
                continue
            for variant, knobs in _variants(name).items():
                router = contender(
                    policy, data.val, budget=None, priors=data.priors, seed=seed, **knobs
                )
                _baseline(sheet, f"{name} {variant}", policy, phases.run(router), MISTRAL, budget)
    return sheet


def recovery(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Mistral's mean is shifted to a level in phase 2, then back; budget M; phase 3 of 608 prompts
    and of 1,216.
    """
    sheet, test = Sheet(), data.test
    rows = np.random.default_rng(42).permutation(len(test))[PHASE : 2 * PHASE]
    for longer, length in ((False, 608), (True, 1216)):
        for level in LEVELS:
            shifted = test.rewards.copy()
            # The mean is that of the phase's own prompts.
            shifted[:, MISTRAL] = np.clip(
                shifted[:, MISTRAL] + level - shifted[rows, MISTRAL].mean(), 0.0, 1.0
            )
            phases = phases_of(data, 7000, seed, rewards=shifted, costs=test.costs, longer=longer)
            for policy in policies:
                brought = phases.run(
                    contender(policy, data.val, budget=FINITE["M"], priors=data.priors, seed=seed)
                )
                sheet.put(
                    f"{level:g} P3 of {length} ÷P1 %",
                    policy,
                    100.0 * brought[2].reward / brought[0].reward,
                )
                if longer and level in (0.3, 0.5, 0.6, 0.7):
                    sheet.draw(
                        f"{level:g}",
                        policy,
                        moving(joined(brought).rewards)[len(checkpoints(2 * PHASE)) :],
                    )
    return sheet


def _record(
    sheet: Sheet, prefix: str, policy: str, brought: Sequence[Outcome], k: int, budget: float | None
) -> None:
    model = ("Llama", "Mistral", "Gemini")[k]
    for number, phase in enumerate(brought, 1):
        sheet.put(f"{prefix} reward P{number}", policy, phase.reward)
        if budget is None:
            sheet.put(f"{prefix} cost e-2 P{number}", policy, float(phase.costs.mean() * 100.0))
        else:
            sheet.put(f"{prefix} cost÷B P{number}", policy, phase.ratio(budget))
            sheet.put(f"{prefix} mean λ P{number}", policy, float(phase.lambdas.mean()))
        sheet.put(f"{prefix} {model} % P{number}", policy, phase.share(k))
    if policy != "reference":
        _draw(sheet, prefix, policy, joined(brought), k)


def _baseline(
    sheet: Sheet, prefix: str, policy: str, brought: Sequence[Outcome], k: int, budget: float
) -> None:
    model = ("Llama", "Mistral", "Gemini")[k]
    for number, phase in enumerate(brought, 1):
        sheet.put(f"{prefix} reward P{number}", policy, phase.reward)
        sheet.put(f"{prefix} cost÷B P{number}", policy, phase.ratio(budget))
        sheet.put(f"{prefix} {model} % P{number}", policy, phase.share(k))
    if policy == "paper" and prefix.startswith("M "):
        _draw(sheet, prefix, policy, joined(brought), k)


def _draw(sheet: Sheet, prefix: str, policy: str, outcome: Outcome, k: int) -> None:
    sheet.draw(f"{prefix} share", policy, moving(outcome.arms == k))
    sheet.draw(f"{prefix} reward", policy, moving(outcome.rewards))
    sheet.draw(f"{prefix} cost", policy, moving(outcome.costs))


def troughs(sheets: Sequence[Sheet]) -> dict[str, dict[str, Interval]]:
    """Return how many requests into phase 2 the mean reward of the last 50 is at its lowest."""
    found: dict[str, dict[str, Interval]] = {}
    steps = np.array(checkpoints(3 * PHASE))
    inside = np.flatnonzero((steps > PHASE) & (steps <= 2 * PHASE))
    for name in FINITE:
        for policy in sheets[0].curves[f"{name} reward"]:
            mean = np.mean([sheet.curves[f"{name} reward"][policy] for sheet in sheets], axis=0)
            lowest = float(steps[inside[np.argmin(mean[inside])]] - PHASE)
            found.setdefault(f"{name} trough after", {})[policy] = Interval(lowest, lowest, lowest)
    return found
