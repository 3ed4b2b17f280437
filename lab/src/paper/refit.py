"""The baseline of E2 that knows the new price: its fixed penalty λ_c, chosen again on the
validation split for each phase.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from paper.contenders import FINITE, GEMINI
from paper.data import Data
from paper.lockstep import Lockstep, Setting
from router_state.config import PAPER, Price

CANDIDATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
SEEDS, OFFSET = 10, 9500
# Fixed penalties of the paper's baselines, and its price of Gemini in phase 2.
STATIC_LAMBDA = {"T": 0.4, "M": 0.3, "L": 0.1}
CUT, CUT_FACTOR = Price(0.1, 0.1), 0.1 / 5.625


@lru_cache(maxsize=1)
def refitted(data: Data) -> dict[str, tuple[float, float]]:
    """Return per budget the candidates whose mean cost comes closest to it, at the cut price and at
    the old one.

    The split is learned once with the old penalty and the old price, then played again with each
    candidate; 10 seeds.
    """
    spent = np.mean([_spent(data, seed) for seed in range(SEEDS)], axis=0)
    chosen = np.abs(spent - np.array(list(FINITE.values()))[:, None]).argmin(axis=2)
    return {
        name: (CANDIDATES[chosen[0, row]], CANDIDATES[chosen[1, row]])
        for row, name in enumerate(FINITE)
    }


def _spent(data: Data, seed: int) -> np.ndarray:
    """Return the mean cost at the cut price and at the old one, per budget and candidate, shape (2,
    budgets, candidates).
    """
    val = data.val
    rng = np.random.default_rng(OFFSET + seed)
    learned, played = rng.permutation(len(val)), rng.permutation(len(val))
    base = Lockstep(
        val,
        [Setting(PAPER.alpha, 1.0, PAPER.n_eff, None, STATIC_LAMBDA[name]) for name in FINITE],
        data.priors,
    )
    base.run(val.contexts, val.rewards, val.costs, learned)
    found = []
    for cut in (True, False):
        runs = base.repeat(len(CANDIDATES))
        costs = val.costs.copy()
        if cut:
            costs[:, GEMINI] *= CUT_FACTOR
            runs.declare([*val.prices[:GEMINI], CUT])
        runs.lambda_c = np.tile(CANDIDATES, len(FINITE))
        found.append(
            runs.run(val.contexts, val.rewards, costs, played)[1]
            .mean(axis=1)
            .reshape(len(FINITE), -1)
        )
    return np.stack(found)
