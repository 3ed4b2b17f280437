"""E4: a fourth model joins, nothing known of it: 20 forced pulls, then it must earn its
requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.data import Benchmark
from paper.contenders import BUDGETS, GEMINI, LLAMA, MISTRAL, contender_of
from paper.data import Data
from paper.outcome import Outcome, Sheet, joined, moving, running
from router_state.config import Price
from streams.priors.fitted_priors import Priors

PULLS, WINDOW, HOLD, ADOPTED, LAST = 20, 100, 50, 0.1, 200
EVERY = 25


@dataclass(frozen=True, slots=True)
class Kind:
    """A newcomer: rewards and costs × these; `booked`: its ceiling by the input price, as in the
    library after a repricing.
    """

    name: str
    quality: float = 1.0
    dear: float = 1.0
    booked: bool = False


KINDS = (
    Kind("good cheap"),
    Kind("bad cheap", quality=0.5),
    Kind("good dear", dear=10.0, booked=True),
    Kind("good dear, full list price", dear=10.0),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """The models that are there first, in the columns' order of `test`, and the one that joins: the
    last column.
    """

    val: Benchmark
    first: tuple[int, ...]
    priors: Priors
    test: Benchmark
    who: str


def stage(data: Data) -> Stage:
    """Return the paper's portfolio, or without Gemini Flash's data Llama and Gemini, which Mistral
    joins.
    """
    if data.joined is not None:
        return Stage(data.val, (LLAMA, MISTRAL, GEMINI), data.priors, data.joined, "Flash")
    columns, kept, test = [LLAMA, GEMINI, MISTRAL], [LLAMA, GEMINI], data.test
    priors = Priors(
        tuple(data.priors.models[k] for k in kept),
        data.priors.A[kept],
        data.priors.b[kept],
        data.priors.projection,
    )
    reordered = Benchmark(
        tuple(test.models[k] for k in columns),
        tuple(test.prices[k] for k in columns),
        test.prompts,
        test.contexts,
        test.rewards[:, columns],
        test.costs[:, columns],
        test.sources,
    )
    return Stage(data.val, (LLAMA, GEMINI), priors, reordered, "Mistral")


def onboarding(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Run every kind of newcomer under every budget, after learning on the validation prompts
    without it.
    """
    sheet, at = Sheet(), stage(data)
    val, test, rows = at.val, at.test, list(at.first)
    rng = np.random.default_rng(9000 + seed)
    burn, order = rng.permutation(len(val)), rng.permutation(len(test))
    new, listed = len(test.models) - 1, test.prices[-1]
    told = "" if at.who == "Flash" else f"{at.who} joins, "
    for kind in KINDS:
        rewards, costs = test.rewards.copy(), test.costs.copy()
        rewards[:, new] *= kind.quality
        costs[:, new] *= kind.dear
        price = Price(listed.input_price_per_m * kind.dear, listed.output_price_per_m * kind.dear)
        booked = Price(price.input_price_per_m, price.input_price_per_m) if kind.booked else None
        for name, budget in BUDGETS.items():
            if kind is KINDS[-1] and budget is None:
                continue  # Without a budget no price is looked at.
            for policy in policies:
                router = contender_of(
                    policy,
                    test.models[:new],
                    test.prices[:new],
                    budget=budget,
                    priors=at.priors,
                    seed=seed,
                )
                before = router.run(val.contexts, val.rewards[:, rows], val.costs[:, rows], burn)
                router.join(test.models[new], price, pulls=PULLS, booked=booked)
                outcome = router.run(test.contexts, rewards, costs, order)
                _record(sheet, f"{told}{kind.name} {name}", policy, outcome, new=new, who=at.who)
                if policy != "reference":
                    _draw(sheet, f"{kind.name} {name}", policy, joined([before, outcome]), new=new)
    return sheet


def _record(
    sheet: Sheet, prefix: str, policy: str, outcome: Outcome, *, new: int, who: str
) -> None:
    sheet.put(f"{prefix} reward", policy, outcome.reward)
    sheet.put(f"{prefix} cost e-4", policy, float(outcome.costs.mean() * 1e4))
    sheet.put(f"{prefix} {who} %", policy, outcome.share(new))
    sheet.put(f"{prefix} final %", policy, outcome.share(new, last=LAST))
    sheet.put(f"{prefix} adopted at", policy, adopted_at(outcome.arms == new))


def _draw(sheet: Sheet, prefix: str, policy: str, outcome: Outcome, *, new: int) -> None:
    sheet.draw(f"{prefix} share", policy, moving(outcome.arms == new, every=EVERY, window=WINDOW))
    sheet.draw(f"{prefix} cost", policy, running(outcome.costs, every=EVERY))
    sheet.draw(f"{prefix} reward", policy, running(outcome.rewards, every=EVERY))


def adopted_at(called: np.ndarray) -> float:
    """Return the first request, counted from 1 and after the forced pulls have left the window,
    from which on the newcomer holds a tenth of the last 100 for 50 requests; 0 if it never does.
    """
    total = np.concatenate([[0], np.cumsum(called)])
    n, skipped, held = len(called), PULLS + WINDOW, 0
    for at in range(skipped + 1, n + 1):
        held = held + 1 if total[at] - total[at - WINDOW] >= ADOPTED * WINDOW - 1e-9 else 0
        if held == HOLD:
            return float(at - HOLD + 1)
    return 0.0
