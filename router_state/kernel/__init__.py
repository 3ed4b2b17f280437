"""The arithmetic of every event, compiled where it can be.

The modules of this folder are Python, and are what is compiled: into one extension, `_compiled`, by
`build_kernel.py`. Without it, or if it was compiled from another text, they run as Python: equal to
the bit, and hundreds of times slower.
"""

from __future__ import annotations

import warnings
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING


def sources() -> str:
    """Return a digest of this folder's modules."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _load() -> ModuleType | None:
    try:
        found = import_module("router_state.kernel._compiled")
    except ImportError:
        return None
    if sources() == found.SOURCES:
        return found
    warnings.warn(
        "the compiled kernel belongs to another text and is not used: tools/setup builds it again",
        stacklevel=2,
    )
    return None


_compiled = _load()
COMPILED: bool = _compiled is not None
"""True where the kernel runs compiled."""
if TYPE_CHECKING or _compiled is None:
    from router_state.kernel.arm import Arm, log_price
    from router_state.kernel.books import Books, Forgotten, checked_cost
    from router_state.kernel.candidates import Candidates
    from router_state.kernel.context import check
    from router_state.kernel.cost_means import LEAST_PART, cost_piece
    from router_state.kernel.cost_model import MOST_TAUGHT, CostModel
    from router_state.kernel.costs import within_risk
    from router_state.kernel.debt import HORIZON, SAVED, Debt
    from router_state.kernel.deciders import TOLERATED, Decider, Optimism, Thompson
    from router_state.kernel.deciding import decide
    from router_state.kernel.detector import CUT_AT, LIMIT, Detector, Shift, Side
    from router_state.kernel.dollar_dual import UNREACHABLE, DollarDual
    from router_state.kernel.dual import FAR, Options
    from router_state.kernel.elementary import exp_of, log_of, tabulated
    from router_state.kernel.ema_pacer import EMA_STEP, LAMBDA_MAX, EmaPacer
    from router_state.kernel.estimating import conclude_shifted, estimate
    from router_state.kernel.gaussian import TAILS, WIDE
    from router_state.kernel.learning import (
        NOT_LEARNED,
        Apart,
        Learner,
        Together,
        learn_bill,
        learn_reward,
    )
    from router_state.kernel.linear import EPSILON
    from router_state.kernel.pacer import Pacer, Terms, Unpaced
    from router_state.kernel.portfolio import Portfolio
    from router_state.kernel.predictive import Predictive, lognormal_mean
    from router_state.kernel.propensity import LEAST_PROPENSITY, wins
    from router_state.kernel.randomness import Chance
    from router_state.kernel.record import Label, RequestRecord, Settlement, record_of
    from router_state.kernel.regression import MAX_DECAY_STEPS, RIDGE_FLOOR, Regression
    from router_state.kernel.sample import EVERY, LEVEL, SAMPLE_PIECE, PosteriorSample
    from router_state.kernel.settling import checked_reward, learn, settle
    from router_state.kernel.shared_prior import SharedPrior
    from router_state.kernel.waiting import waits
    from router_state.kernel.window import (
        BLOCK,
        CLOSED,
        PIECES,
        PRICES,
        WAIT_PRICES,
        Window,
    )
    from router_state.kernel.window_scores import keep, options
else:
    globals().update(_compiled.public())

__all__ = [
    "BLOCK",
    "CLOSED",
    "COMPILED",
    "CUT_AT",
    "EMA_STEP",
    "EPSILON",
    "EVERY",
    "FAR",
    "HORIZON",
    "LAMBDA_MAX",
    "LEAST_PART",
    "LEAST_PROPENSITY",
    "LEVEL",
    "LIMIT",
    "MAX_DECAY_STEPS",
    "MOST_TAUGHT",
    "NOT_LEARNED",
    "PIECES",
    "PRICES",
    "RIDGE_FLOOR",
    "SAMPLE_PIECE",
    "SAVED",
    "TAILS",
    "TOLERATED",
    "UNREACHABLE",
    "WAIT_PRICES",
    "WIDE",
    "Apart",
    "Arm",
    "Books",
    "Candidates",
    "Chance",
    "CostModel",
    "Debt",
    "Decider",
    "Detector",
    "DollarDual",
    "EmaPacer",
    "Forgotten",
    "Label",
    "Learner",
    "Optimism",
    "Options",
    "Pacer",
    "Portfolio",
    "PosteriorSample",
    "Predictive",
    "Regression",
    "RequestRecord",
    "Settlement",
    "SharedPrior",
    "Shift",
    "Side",
    "Terms",
    "Thompson",
    "Together",
    "Unpaced",
    "Window",
    "check",
    "checked_cost",
    "checked_reward",
    "conclude_shifted",
    "cost_piece",
    "decide",
    "estimate",
    "exp_of",
    "keep",
    "learn",
    "learn_bill",
    "learn_reward",
    "log_of",
    "log_price",
    "lognormal_mean",
    "options",
    "record_of",
    "settle",
    "sources",
    "tabulated",
    "waits",
    "wins",
    "within_risk",
]
