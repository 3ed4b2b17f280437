"""The scores and expected costs that a window's requests have now, as choices see them."""

from __future__ import annotations

import numpy as np

from router_state.arms import Arms
from router_state.kernel import Options, Window


def candidates(window: Window, arms: Arms, *, beside: bool = True) -> Options:
    """Return scores, and expected costs in dollars by each request's price, of every arm for every
    context of a window, as it is known now and the choices see it, chance included.

    Scores are less what calls cost beside dollars, unless that is not to be taken off (`beside`).
    An arm that a request could not be given to can't win there.
    """
    found = window.options(arms, arms.tokens.slots)
    for one in arms.slotted:
        one.expect_window(found.arrays()[1])
    if beside and arms.beside is not None:
        costs = arms.beside.costs(window)
        if costs is not None:
            np.subtract(scores := found.arrays()[0], costs, out=scores)
    if window.limited or arms.open is None:
        window.close(arms, *found.arrays())
    return found if arms.planner is None or not beside else arms.planner.planned(found)
