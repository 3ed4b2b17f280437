"""The budget of a run: what has been charged to it, and which models what is left can pay for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from router_state.errors import RouterStateError

WARNED_AT = 0.8
"""Share of a run's budget at which an alert tells of it: there is time to end it in good order."""
RULED_OUT = "session_budget"
"""Why a model is ruled out that costs more than is left, and why another one is chosen then."""


class SessionSpent(RouterStateError):
    """Nothing is left of the session's budget, and the router refuses then."""

    reason = "session_spent"


class RunBudget(Struct, frozen=True, omit_defaults=True):
    """The budgets of a router's runs, as declared.

    `budget_usd` is that of each session whose requests say none; None: such a session has no limit.
    `refuses`: whether a session that has spent its budget is refused; else the cheapest model
    answers.
    """

    budget_usd: float | None = None
    refuses: bool = False


class Run(Struct, omit_defaults=True):
    """One run.

    Attributes:
        at: when it was last asked for, in seconds since the epoch.
        born: number of the first decision that counts.
        charged_usd: its bills, and what is expected of calls that have none.
        budget_usd: what its requests said last; None: as the router declares.
        warned: whether an alert has told of this budget.
    """

    at: float
    born: int
    charged_usd: float = 0.0
    budget_usd: float | None = None
    warned: bool = False


def within(
    left_usd: float, excluded: list[str | None], expected: Sequence[float], *, refuses: bool
) -> tuple[list[str | None], str | None]:
    """Rule out arms that are expected to cost more than is left of a run; where that changes
    anything, the reason is `RULED_OUT`.

    Where no arm is left, the cheapest one is.

    Raises:
        SessionSpent: no arm is left, and the run is refused then.
    """
    found = [
        why or (None if cost <= left_usd else RULED_OUT)
        for why, cost in zip(excluded, expected, strict=True)
    ]
    if None in found:
        return found, None if found == excluded else RULED_OUT
    if refuses:
        raise SessionSpent(
            f"${max(left_usd, 0.0):.6f} is left of the session's budget, less than the cheapest "
            "eligible model costs: end the run, or say more with session_budget_usd"
        )
    costs = zip(expected, excluded, strict=True)
    cheapest = min((cost, k) for k, (cost, why) in enumerate(costs) if why is None)[1]
    return [None if k == cheapest else why for k, why in enumerate(found)], RULED_OUT
