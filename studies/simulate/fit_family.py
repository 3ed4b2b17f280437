"""Fit what a family knows to the histories of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from agents.members.kin_notes import estimated
from router_state.config import LIVE, Price
from router_state.families.family_estimating import FIRST_ROUNDS
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import Model, Report
from router_state.families.family_sums import LEAST_REPORTED, Sums, bytes_of
from router_state.kernel import list_price_of
from router_state.learning.guess import COSTS, REWARDS
from schemas.families import FamilyEstimated
from studies.history.happened import Declared
from studies.simulate.cases import Case
from studies.simulate.observed import NothingObserved, observe
from studies.simulate.verdicts_seen import VerdictsSeen
from studies.warm_start.observations import Observations

LEAST_NOISE = 1e-6
"""Least variance of an observation, as in a router."""
SURE = 50.0
"""Observations beyond the coefficients from which on their variance is taken from them."""


class Priced:
    """Cases of one router, whose last list prices and family are noted on the way."""

    def __init__(self) -> None:
        self.prices: dict[str, Price] = {}
        self.family: str | None = None

    def through(self, cases: Iterable[Case | Declared]) -> Iterator[Case | Declared]:
        """Yield the cases."""
        for case in cases:
            if isinstance(case, Declared) and case.router is not None:
                family = case.router.family
                self.family = None if family is None else family.name
                self.prices = {
                    name: Price(one.input_price_per_m, one.output_price_per_m)
                    for name, one in case.router.models.items()
                }
            yield case


def report_of(
    family: str,
    router_id: str,
    cases: Iterable[Case | Declared],
    priced: Priced,
    verdicts: VerdictsSeen,
) -> Report | None:
    """Return the report that a router would make at the end of its history, whose declarations
    `priced` has noted, and whose verdicts `verdicts`; None: it has fewer than 20 rewards and 20
    bills.
    """
    try:
        observed = observe(cases)
    except NothingObserved:
        return None
    ratios = _log_ratios(observed, priced.prices)
    sides, noise, seen, whole = [], [], [], []
    for y, guess in ((observed.rewards, REWARDS), (ratios, COSTS)):
        sums, variance = _sums(observed.contexts, y, observed.models)
        whole.append(sums)
        count = int(np.isfinite(y).sum())
        sides.append(
            {} if count < LEAST_REPORTED else {n: bytes_of(one) for n, one in sums.items()}
        )
        noise.append(guess.noise if variance is None else variance)
        seen.append(count)
    names = [name for name in observed.models if name in sides[0] or name in sides[1]]
    if not names:
        return None
    d = observed.contexts.shape[1]
    shared = verdicts.numbers(observed.models, whole[0], d, noise[0])
    models = {
        name: Model(sides[0].get(name, b""), sides[1].get(name, b""), shared.get(name, {}))
        for name in names
    }
    return Report(
        family,
        router_id,
        0,
        0,
        d,
        "",
        seen=(seen[0], seen[1]),
        noise=(noise[0], noise[1]),
        names=tuple(names),
        models=models,
    )


def fit_family(
    name: str, reports: Iterable[Report], *, projection: str, now: float
) -> FamilyEstimated:
    """Return a family's estimates from the reports of its members, as its owner would publish
    them.
    """
    owner = FamilyOwner(name, lambda piece: None, rounds=FIRST_ROUNDS)
    for report in reports:
        owner.take_report(report)
    owner.projection = projection
    estimating = owner.estimating()
    estimating.run()
    owner.take(estimating)
    return estimated(owner, now=now)


def _log_ratios(observed: Observations, prices: Mapping[str, Price]) -> np.ndarray:
    """Return the logarithms of bill ÷ list price; NaN for bills of zero, and of free models."""
    listed = np.array(
        [
            list_price_of(prices[name]) if name in prices and prices[name].per_1k > 0.0 else np.nan
            for name in observed.models
        ]
    )
    found: np.ndarray = observed.log_costs - np.log(listed)
    return found


def _sums(
    X: np.ndarray, Y: np.ndarray, models: Iterable[str]
) -> tuple[dict[str, Sums], float | None]:
    """Return the sums of each model, faded as a router's, and the variance around them."""
    left = LIVE.gamma ** np.arange(len(X) - 1, -1, -1.0)
    found: dict[str, Sums] = {}
    squares = freedom = 0.0
    for k, name in enumerate(models):
        at = np.flatnonzero(np.isfinite(Y[:, k]))
        if not len(at):
            continue
        x, y, w = X[at], Y[at, k], left[at]
        sums = Sums((x.T * w) @ x, (x.T * w) @ y)
        found[name] = sums
        theta = np.linalg.solve(sums.A + np.eye(X.shape[1]), sums.b)
        squares += float(((y - x @ theta) ** 2).sum())
        freedom += max(len(at) - X.shape[1], 0)
    return found, max(squares / freedom, LEAST_NOISE) if freedom > SURE else None
