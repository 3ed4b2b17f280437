"""The prices of a request: the window of the last contexts, and the two duals that are solved over
it.

The dual of dollars is the pacer; the dual of seconds is the capability `latency`. Each is solved
exactly given the other's price, and the two alternate.
"""

from __future__ import annotations

from router_state.arms import Arms
from router_state.choice import Choice
from router_state.kernel import EVERY, PRICE_OF
from router_state.pacing.pacer import Pacer


def weigh(pacer: Pacer, arms: Arms, choice: Choice) -> None:
    """Store a request's context in the window, solve again where an input has jumped, and set the
    request's price of a dollar.
    """
    pacer.begin(choice)
    window = arms.window
    if window is None:
        choice.price = pacer.per_dollar(1.0)
        return
    choice.slot = slot = window.push(choice.request.x, choice.limited_to)
    if arms.tokens.in_use:
        arms.tokens.place(slot, choice.tokens)
    if arms.slotted:
        for one in arms.slotted:
            one.placed(slot, choice)
    # λ_t is solved again at the latest when levels were measured. In a short window every context
    # changes the solution.
    if arms.journal.jumped or window.size < EVERY:
        if arms.beside is not None:
            # The dual of dollars is solved first, so that spend follows the budget whatever the
            # price of waits is.
            arms.beside.solve(
                window,
                per_dollar=pacer.per_dollar(1.0),
                target_usd=pacer.target_usd,
                now=choice.now,
            )
        pacer.solve(arms, window, now=choice.now)
        arms.journal.jumped = False
    choice.price = pacer.per_dollar(PRICE_OF[slot])
