"""The budget of a run: dollars charged, and models that the dollars left can pay for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from router_state.errors import RouterStateError

WARNED_AT = 0.8
"""Share of a run's budget at which an alert is raised, so that the agent can end the run in good
order.
"""
RULED_OUT = "session_budget"
"""Reason for ruling out a model that costs more than is left, and for choosing another one
then.
"""


class SessionSpent(RouterStateError):
    """Nothing is left of the session's budget, and the router refuses then."""

    reason = "session_spent"


class RunBudget(Struct, frozen=True, omit_defaults=True):
    """The budgets of a router's runs, as declared.

    `budget_usd` is the budget of a session whose requests name none; None: no limit. `refuses`:
    requests of a session that has spent its budget are refused; otherwise the cheapest model
    answers them.
    """

    budget_usd: float | None = None
    refuses: bool = False


class Run(Struct, omit_defaults=True):
    """One run.

    Attributes:
        at: time of the run's last request, in seconds since the epoch.
        born: number of the run's first decision.
        charged_usd: dollars of bills, and expected dollars of calls without a bill.
        budget_usd: budget in the run's latest request that names one; None: the router's.
        warned: whether an alert was raised for this budget.
    """

    at: float
    born: int
    charged_usd: float = 0.0
    budget_usd: float | None = None
    warned: bool = False


def within(
    left_usd: float, excluded: list[str | None], expected: Sequence[float], *, refuses: bool
) -> tuple[list[str | None], str | None]:
    """Rule out arms whose expected cost is above the dollars left of a run. If that changes
    anything, the decision's reason is `RULED_OUT`.

    If no arm would be left, the cheapest one stays eligible.

    Raises:
        SessionSpent: no arm is left, and the router refuses then.
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
