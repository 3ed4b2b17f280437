"""The present scores and expected costs of a window's requests, as choices see them."""

from __future__ import annotations

import numpy as np

from router_state.arms import Arms
from router_state.kernel import Options, Window


def candidates(window: Window, arms: Arms, *, beside: bool = True) -> Options:
    """Return present scores, and expected dollars times each request's price, of every arm for
    every context of a window; draws are included.

    With `beside`, costs of calls other than dollars, such as seconds, are subtracted from scores.
    An arm that a request could not call can't win the request's context.
    """
    found = window.options(arms, arms.tokens.slots)
    for one in arms.expecting:
        one.expect_window(found.arrays()[1])
    if beside and arms.beside is not None:
        costs = arms.beside.costs(window)
        if costs is not None:
            np.subtract(scores := found.arrays()[0], costs, out=scores)
    if window.limited or arms.open is None:
        window.close(arms, *found.arrays())
    return found if arms.planner is None or not beside else arms.planner.planned(found)
