"""The arithmetic of every event, in Cython: `build_kernel.py` compiles it.

`numbers` has the sums, `learning` the regressions, `costs` the cost of a call, `choosing` the arms
and their scores, `pacing` the price of a dollar, `attempts` plans of two calls. Each folder uses
only those named before it. The kernel imports nothing of the core and calls none of its functions;
`given` declares the objects that callers hand to the kernel.
"""

from __future__ import annotations

try:
    import router_state.kernel.numbers.words  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"the kernel is not compiled for this Python ({error}): run tools/setup, or install "
        "Cython and a C compiler and run python build_kernel.py"
    ) from error

from router_state.kernel.attempts.begun_plan import begin_plan
from router_state.kernel.attempts.later_calls import Failures
from router_state.kernel.attempts.planned_calls import Planning
from router_state.kernel.attempts.planned_spend import PlannedSpend
from router_state.kernel.attempts.plans import Looks, PlannedOptions
from router_state.kernel.attempts.verdict_table import VerdictTable, Views
from router_state.kernel.choosing.arm import Arm, log_price
from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.choosing.context import MAX_NORM, check
from router_state.kernel.choosing.portfolio import Portfolio
from router_state.kernel.choosing.propensity import LEAST_PROPENSITY, wins
from router_state.kernel.choosing.risk import within_risk
from router_state.kernel.choosing.sample import EVERY, LEVEL, SAMPLE_PIECE, PosteriorSample
from router_state.kernel.costs.bills import learn_bill
from router_state.kernel.costs.cost_means import (
    LEAST_CALIBRATION,
    LOGNORMAL_BILLS,
    cost_piece,
)
from router_state.kernel.costs.cost_model import MOST_TAUGHT, CostModel
from router_state.kernel.costs.predictive import Predictive, lognormal_mean
from router_state.kernel.costs.ratio import MOST_EXPONENT, bounded, list_price_of
from router_state.kernel.given import Matrix, Vector
from router_state.kernel.learning.counts import BELIEVED, GUESSED, MEMORY
from router_state.kernel.learning.detector import CUT_AT, LIMIT, Detector, Shift, Side
from router_state.kernel.learning.estimating import conclude_shifted, conclude_with, estimate
from router_state.kernel.learning.evidence import Evidence
from router_state.kernel.learning.gaussian import TAILS, WIDE
from router_state.kernel.learning.regression import MAX_DECAY_STEPS, RIDGE_FLOOR, Regression
from router_state.kernel.learning.reward_learning import learn_alone, learn_reward
from router_state.kernel.learning.shared_prior import GROWTH, SharedPrior
from router_state.kernel.numbers.elementary import exp_of, log_of, tabulated
from router_state.kernel.numbers.linear import EPSILON
from router_state.kernel.numbers.randomness import Chance
from router_state.kernel.numbers.rice import decode as rice_decode
from router_state.kernel.numbers.rice import encode as rice_encode
from router_state.kernel.numbers.total import Total
from router_state.kernel.pacing.call_times import waits
from router_state.kernel.pacing.debt import HORIZON, SAVED, Debt
from router_state.kernel.pacing.dual import FAR, Options
from router_state.kernel.pacing.window import (
    BLOCK,
    CLOSED,
    PIECES,
    PRICE_OF,
    PRICES,
    WAIT_PRICES,
    WINDOW,
    Window,
    lots,
)
from router_state.kernel.pacing.window_scores import options

__all__ = [
    "BELIEVED",
    "BLOCK",
    "CLOSED",
    "CUT_AT",
    "EPSILON",
    "EVERY",
    "FAR",
    "GROWTH",
    "GUESSED",
    "HORIZON",
    "LEAST_CALIBRATION",
    "LEAST_PROPENSITY",
    "LEVEL",
    "LIMIT",
    "LOGNORMAL_BILLS",
    "MAX_DECAY_STEPS",
    "MAX_NORM",
    "MEMORY",
    "MOST_EXPONENT",
    "MOST_TAUGHT",
    "PIECES",
    "PRICES",
    "PRICE_OF",
    "RIDGE_FLOOR",
    "SAMPLE_PIECE",
    "SAVED",
    "TAILS",
    "WAIT_PRICES",
    "WIDE",
    "WINDOW",
    "Arm",
    "Candidates",
    "Chance",
    "CostModel",
    "Debt",
    "Detector",
    "Evidence",
    "Failures",
    "Looks",
    "Matrix",
    "Options",
    "PlannedOptions",
    "PlannedSpend",
    "Planning",
    "Portfolio",
    "PosteriorSample",
    "Predictive",
    "Regression",
    "SharedPrior",
    "Shift",
    "Side",
    "Total",
    "Vector",
    "VerdictTable",
    "Views",
    "Window",
    "begin_plan",
    "bounded",
    "check",
    "conclude_shifted",
    "conclude_with",
    "cost_piece",
    "estimate",
    "exp_of",
    "learn_alone",
    "learn_bill",
    "learn_reward",
    "list_price_of",
    "log_of",
    "log_price",
    "lognormal_mean",
    "lots",
    "options",
    "rice_decode",
    "rice_encode",
    "tabulated",
    "waits",
    "wins",
    "within_risk",
]
