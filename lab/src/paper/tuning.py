"""A: the search over α and γ, its knee, and what the chosen setting brings.

The validation split in file order: 595 prompts to learn from, 1,190 to measure on. Two goods: the
area under reward over cost of seven budgets; the reward of the second half while Mistral earns
0.50, mean of the budgets T, M and L.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.data import Benchmark
from benchmarks.report import Interval, bootstrap
from paper.contenders import FINITE, MISTRAL, contender
from paper.data import Data
from paper.frontier import area, frontier, knee, knees
from paper.lockstep import Lockstep, Setting
from paper.outcome import Sheet
from paper.stationary import MODELS
from router_state.profiles import n_eff_of

ALPHAS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
GAMMAS = (0.994, 0.995, 0.996, 0.997, 0.998, 0.999, 1.0)
HORIZONS = (250, 500, 1000)
# Geometric between the mean costs of the cheapest and the dearest model over the training prompts,
# which are not in the wheel.
BUDGETS = (2.889e-5, 8.184e-5, 2.3185e-4, 6.568e-4, 1.8607e-3, 5.271e-3, 1.4932e-2)
FAILING, LIGHTER = 0.50, 0.75
VAL, TEST, FAILURE = 0, 1000, 2000
GRID = tuple(itertools.product(ALPHAS, GAMMAS))


def halves(val: Benchmark) -> tuple[Benchmark, Benchmark]:
    """Return what is learned from and what is measured on."""
    cut = len(val) // 3
    return _rows(val, slice(0, cut)), _rows(val, slice(cut, None))


def _rows(data: Benchmark, rows: slice) -> Benchmark:
    return Benchmark(
        data.models,
        data.prices,
        data.prompts[rows],
        data.contexts[rows],
        data.rewards[rows],
        data.costs[rows],
        data.sources[rows],
    )


def _range(data: Benchmark) -> tuple[float, float]:
    means = data.costs.mean(axis=0)
    return float(means.min()), float(means.max())


def tuning(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Both goods for every α, γ and T_adapt, warm and cold; the chosen setting again with each
    policy's own engine.
    """
    sheet = Sheet()
    burn, rest = halves(data.val)
    if "paper" in policies:
        for horizon in (*HORIZONS, None):
            _search(sheet, data, burn, rest, horizon, seed)
        means = data.test.rewards.mean(axis=0)
        sheet.put(
            "fixed models, test area",
            "here",
            area(data.test.costs.mean(axis=0), means, *_range(data.test)),
        )
    for policy in policies:
        for kind, cold in (("warm", False), ("cold", True)):
            _chosen(sheet, data, burn, rest, kind, cold, policy, seed)
    return sheet


def _search(
    sheet: Sheet, data: Data, burn: Benchmark, rest: Benchmark, horizon: int | None, seed: int
) -> None:
    """Add the goods of the whole grid as curves; `horizon` None: cold."""
    settings = [
        Setting(
            alpha,
            gamma,
            None if horizon is None else round(n_eff_of(horizon, gamma=gamma), 1),
            None,
        )
        for alpha, gamma in GRID
    ]
    name = "cold" if horizon is None else str(horizon)
    paced = [replace(one, budget=budget, seed=VAL + seed) for one in settings for budget in BUDGETS]
    rewards, costs = _play(data, burn, rest, paced, VAL + seed)
    shape = (len(settings), len(BUDGETS))
    points = zip(
        costs.mean(axis=1).reshape(shape), rewards.mean(axis=1).reshape(shape), strict=True
    )
    sheet.draw("area", name, [area(c, r, *_range(rest)) for c, r in points])
    paced = [
        replace(one, budget=budget, seed=FAILURE + seed)
        for one in settings
        for budget in FINITE.values()
    ]
    for level in (FAILING, LIGHTER) if horizon is not None else (FAILING,):
        if horizon in (250, 1000) and level == FAILING:
            continue
        second = _play(data, burn, rest, paced, FAILURE + seed, failing=MISTRAL, level=level)[0]
        sheet.draw(
            f"failing {level:.2f}",
            name,
            list(second.mean(axis=1).reshape(len(settings), -1).mean(axis=1)),
        )


def _play(
    data: Data,
    burn: Benchmark,
    rest: Benchmark,
    settings: Sequence[Setting],
    seed: int,
    *,
    failing: int | None = None,
    level: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rewards and costs of each setting; with a failing model those of the second half."""
    rng = np.random.default_rng(seed)
    runs = Lockstep(data.val, settings, data.priors)
    runs.run(burn.contexts, burn.rewards, burn.costs, rng.permutation(len(burn)))
    order = rng.permutation(len(rest))
    if failing is None:
        return runs.run(rest.contexts, rest.rewards, rest.costs, order)
    middle = len(rest) // 2
    runs.run(rest.contexts, rest.rewards, rest.costs, order[:middle])
    return runs.run(rest.contexts, _failed(rest, failing, level), rest.costs, order[middle:])


def _failed(rest: Benchmark, failing: int, level: float) -> np.ndarray:
    rewards = rest.rewards.copy()
    rewards[:, failing] = level
    return rewards


def _chosen(
    sheet: Sheet,
    data: Data,
    burn: Benchmark,
    rest: Benchmark,
    kind: str,
    cold: bool,
    policy: str,
    seed: int,
) -> None:
    """Add the goods of the paper's choice, measured with the policy's own engine; areas on the test
    split too.
    """
    priors = None if cold else data.priors
    for split, first, then, offset in (
        ("val", burn, rest, VAL),
        ("test", data.val, data.test, TEST),
    ):
        costs, rewards = np.empty(len(BUDGETS)), np.empty(len(BUDGETS))
        for at, budget in enumerate(BUDGETS):
            rng = np.random.default_rng(offset + seed)
            router = contender(policy, data.val, budget=budget, priors=priors, seed=offset + seed)
            router.run(first.contexts, first.rewards, first.costs, rng.permutation(len(first)))
            outcome = router.run(
                then.contexts, then.rewards, then.costs, rng.permutation(len(then))
            )
            costs[at], rewards[at] = outcome.costs.mean(), outcome.reward
        sheet.put(f"{kind} {split} area", policy, area(costs, rewards, *_range(then)))
    for failing, model in enumerate(MODELS):
        if cold and failing != MISTRAL:
            continue
        left = []
        for budget in FINITE.values():
            rng = np.random.default_rng(FAILURE + seed)
            router = contender(policy, data.val, budget=budget, priors=priors, seed=FAILURE + seed)
            router.run(burn.contexts, burn.rewards, burn.costs, rng.permutation(len(burn)))
            order, middle = rng.permutation(len(rest)), len(rest) // 2
            router.run(rest.contexts, rest.rewards, rest.costs, order[:middle])
            left.append(
                router.run(
                    rest.contexts, _failed(rest, failing, FAILING), rest.costs, order[middle:]
                ).reward
            )
        sheet.put(f"{kind} reward, {model} at .50", policy, float(np.mean(left)))


def chosen_settings(sheets: Sequence[Sheet]) -> dict[str, dict[str, Interval]]:
    """Return the knees, how stable the main one is, and the best by area alone."""
    found: dict[str, dict[str, Interval]] = {}

    def tell(row: str, value: float | Interval) -> None:
        found[row] = {
            "here": value if isinstance(value, Interval) else Interval(value, value, value)
        }

    for name, level in (
        ("500", FAILING),
        ("cold", FAILING),
        *((str(horizon), LIGHTER) for horizon in HORIZONS),
    ):
        one, other = goods(sheets, name, level)
        at = knee(one.mean(axis=1), other.mean(axis=1))
        row = (
            {"500": "warm knee", "cold": "cold knee"}[name]
            if level == FAILING
            else f"T_adapt {name}, Mistral at .75"
        )
        tell(f"{row} α", GRID[at][0])
        tell(f"{row} γ", GRID[at][1])
        if name != "cold":
            tell(f"{row} n_eff", n_eff_of(int(name), gamma=GRID[at][1]))
        tell(f"{row} area", bootstrap(one[at]))
        tell(f"{row} failing reward", bootstrap(other[at]))
        if level == FAILING:
            best = int(one.mean(axis=1).argmax())
            tell(f"{name.replace('500', 'warm')} best area α", GRID[best][0])
            tell(f"{name.replace('500', 'warm')} best area γ", GRID[best][1])
            tell(f"{name.replace('500', 'warm')} best area", bootstrap(one[best]))
        if row == "warm knee":
            often = knees(one, other)
            beside = [
                i
                for i, (alpha, gamma) in enumerate(GRID)
                if alpha == GRID[at][0] and abs(gamma - GRID[at][1]) < 0.0011
            ]
            tell("warm knee chosen %", 100.0 * float(often[at]))
            tell("warm knee chosen % within one step of γ", 100.0 * float(often[beside].sum()))
            tell("warm knee settings ever chosen", float((often > 0).sum()))
            tell(
                "warm points on the frontier",
                float(len(frontier(one.mean(axis=1), other.mean(axis=1)))),
            )
    return found


def goods(sheets: Sequence[Sheet], name: str, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return area and reward under failure of every setting, shape (settings, seeds)."""
    one = np.array([sheet.curves["area"][name] for sheet in sheets]).T
    other = np.array([sheet.curves[f"failing {level:.2f}"][name] for sheet in sheets]).T
    return one, other
