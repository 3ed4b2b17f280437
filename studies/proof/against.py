"""Compare a router with a model, or a mix, that nobody used: doubly robust estimates.

Let a be the model that was called, p its logged probability, y the outcome, and q(m) the outcome of
model m that is predicted from earlier requests. A fixed mix π has the term (Dudík et al. 2011,
arXiv:1103.4601)

    Σ π(m)·q(m) + π(a)/p·(y − q(a)),

and the router itself, which chose model b and answers (z = 1) with probability s, has the term

    q(b) + z/s·(y − q(b)).

The difference of the two terms, less the true difference, sums to a martingale over the requests,
whatever q is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ground.json_values import Document
from router_state.config import Vector
from studies.history.happened import Declared
from studies.proof.difference import Terms
from studies.simulate.cases import Case
from studies.simulate.compare import BLOCK, cost_model, learn, reward_model
from studies.simulate.direct import DirectModel
from studies.simulate.limits import ENOUGH, OUT_OF_BALANCE, ROUNDING, SUPPORTED
from studies.simulate.moments import Moments

INCUMBENT = "incumbent"
"""Name of the mix that the router's last declaration calls its incumbent."""
Mix = Mapping[str, float]


@dataclass(slots=True)
class Against:
    """The comparison of one mix with the router: differences of cost and of reward.

    Attributes:
        cost, reward: terms of mix − router.
        weight: π(a)/p of each request; possible: number of requests that each model of the mix
            could have answered.
    """

    mix: Mix
    cost: Terms = field(default_factory=Terms)
    reward: Terms = field(default_factory=Terms)
    weight: Moments = field(default_factory=Moments)
    possible: int = 0

    @property
    def problem(self) -> str | None:
        """Return why the history supports no estimate; None: it does."""
        n, weight = self.weight.n, self.weight
        if not n:
            return "history has no request with a bill or a label yet"
        if self.possible < SUPPORTED * n:
            return "history gave a model of it no chance on too many requests"
        if weight.effective < ENOUGH:
            return f"its effective sample size is {weight.effective:.0f}"
        if abs(weight.mean - 1.0) > OUT_OF_BALANCE * max(weight.half_width, ROUNDING):
            return f"its weights average {weight.mean:.2f} instead of 1"
        return None

    def figures(self) -> Document:
        """Return the figures in the form of the file."""
        found: Document = {"mix": dict(self.mix), "requests": self.weight.n}
        if (problem := self.problem) is not None:
            return found | {"not_supported": problem}
        return found | {
            "saved_usd_per_request": _interval(self.cost, 1.0),
            "reward_gain": _interval(self.reward, -1.0),
        }


def _interval(terms: Terms, sign: float) -> Document:
    if not (terms.units or terms.sums[0]):
        return {"value": None, "low": None, "high": None}
    value, half = terms.shown()
    return {"value": sign * value, "low": sign * value - half, "high": sign * value + half}


def compare(cases: Iterable[Case | Declared], mixes: Mapping[str, Mix | None]) -> Document:
    """Return the figures of each comparison by the name of its mix.

    Args:
        cases: cases and declarations of one router; the outcome of each case is known.
        mixes: mixes by name; None stands for the incumbent of the last declaration.
    """
    kept: list[Case] = []
    by_session, declared = False, dict[str, float]()
    for case in cases:
        if isinstance(case, Case):
            # A request that the router could not answer says nothing of what it would have earned.
            if case.routed_share != 0.0:
                kept.append(case)
        elif case.router is not None and case.router.incumbent is not None:
            by_session, said = case.router.by == "session", case.router.incumbent
            declared = {said: 1.0} if isinstance(said, str) else dict(said)
    found = {name: Against(declared if mix is None else mix) for name, mix in mixes.items()}
    rewards, costs, at = reward_model(), cost_model(), 0
    while at < len(kept):
        # A block has at most half as many cases as came before, all of which q has learned.
        block = kept[at : at + min(BLOCK, at // 2 + 1)]
        for against in found.values():
            _weigh(against, block, rewards, costs, by_session=by_session)
        learn(block, rewards, costs)
        at += len(block)
    return {name: one.figures() for name, one in found.items()}


def _weigh(
    against: Against,
    block: list[Case],
    rewards: DirectModel,
    costs: DirectModel,
    *,
    by_session: bool,
) -> None:
    """Take a block of cases in, given models of earlier ones."""
    X, mix = np.array([case.x for case in block]), against.mix
    called = [case.model for case in block]
    own = [case.own for case in block]
    weights = np.array([mix.get(case.model, 0.0) / case.propensity for case in block])
    against.weight.add(weights)
    against.possible += sum(_could(case, mix) for case in block)
    for terms, q, values in (
        (against.cost, costs, [case.cost_usd for case in block]),
        (against.reward, rewards, [case.reward for case in block]),
    ):
        expected = q.predict_all(X)
        fixed: Vector = sum(
            (share * expected.of([name] * len(block)) for name, share in mix.items()),
            start=np.zeros(len(block)),
        )
        of_called, of_own = expected.of(called), expected.of(own)
        for i, (case, value) in enumerate(zip(block, values, strict=True)):
            if value is None:
                continue
            share = 1.0 if case.routed_share is None else case.routed_share
            router = float(of_own[i])
            if case.routed:
                router += (value - router) / share
            term = float(fixed[i]) + float(weights[i]) * (value - float(of_called[i])) - router
            terms.add(term, case.session_id if by_session else None)


def _could(case: Case, mix: Mix) -> bool:
    """Tell whether each model of a mix could have answered."""
    if set(mix) == {case.model}:
        return True
    return case.propensity < 1.0 and (case.eligible is None or set(mix) <= {*case.eligible})
