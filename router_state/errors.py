"""Define what the core refuses, as facts with a stable `reason`."""

from __future__ import annotations

from ground.refusing import (
    CorruptSnapshot,
    DamagedState,
    NonFiniteInput,
    RouterStateError,
    WrongContext,
)


class EmptyPortfolio(RouterStateError):
    """The router has no model that takes traffic."""

    reason = "empty_portfolio"


class NoAllowedModel(RouterStateError):
    """None of the models that the request allows is in the portfolio."""

    reason = "no_allowed_model"


class NoAffordableModel(RouterStateError):
    """No eligible model has a list price under the request's limit."""

    reason = "no_affordable_model"


class NoCapableModel(RouterStateError):
    """No eligible model can do what the request needs; the message names the need."""

    reason = "no_capable_model"


class CapReached(RouterStateError):
    """The router's hard cap in dollars leaves nothing for this request."""

    reason = "cap_reached"


class BudgetSpent(RouterStateError):
    """Nothing is left of a period's budget, and the router refuses then."""

    reason = "budget_spent"


class UnknownRequest(RouterStateError):
    """A cost or a reward names a request that has no decision (yet)."""

    reason = "unknown_request"


class CostOutOfRange(RouterStateError):
    """A cost is negative or above what one request can cost."""

    reason = "cost_out_of_range"


class UnpricedModel(RouterStateError):
    """A bill in tokens names a model that is not in the portfolio, so the tokens have no price."""

    reason = "unpriced_model"


class RewardOutOfRange(RouterStateError):
    """A reward is outside [0, 1]."""

    reason = "reward_out_of_range"


class UnknownVerifier(RouterStateError):
    """A verdict names a verifier that the router does not declare."""

    reason = "unknown_verifier"


class AttemptBeyondPlan(RouterStateError):
    """A bill, a verdict or a reward names an attempt that the request's plan does not have.

    Args:
        attempt: that attempt.
        calls: how many calls of the request were planned.
    """

    reason = "attempt_beyond_plan"

    def __init__(self, attempt: int, calls: int) -> None:
        planned = "0 alone" if calls == 1 else f"0 to {calls - 1}"
        super().__init__(
            f"attempt {attempt} is none of the request's calls, {planned}: name one of them; what "
            "a further call cost is told by a higher revision of the last bill, with the dollars "
            "of all"
        )


class VerdictOutOfRange(RouterStateError):
    """A verdict is outside [0, 1]."""

    reason = "verdict_out_of_range"


class ContextLost(RouterStateError):
    """No store has the context of the request any more, so its reward can't be learned."""

    reason = "context_lost"


class InvalidConfig(RouterStateError):
    """A declared router contradicts itself; the message says what to change."""

    reason = "invalid_config"


class TooManyMembers(RouterStateError):
    """A pool has the largest allowed number of members."""

    reason = "too_many_members"


class StaleGrant(RouterStateError):
    """A grant names no owner of its pool, or an earlier owner than one that the member has
    seen.
    """

    reason = "stale_grant"


class ImplausibleNumber(RouterStateError):
    """A counter in a report is too large for a pool to add to."""

    reason = "invalid_field"


class UnusablePrior(InvalidConfig):
    """A prior has statistics that no rewards or bills can have, or numbers beyond a float's
    range.
    """

    reason = "wrong_prior"


class WrongFamily(InvalidConfig):
    """A router's family has contexts of another projection, or has no room for the router."""

    reason = "wrong_family"


__all__ = [
    "AttemptBeyondPlan",
    "BudgetSpent",
    "CapReached",
    "ContextLost",
    "CorruptSnapshot",
    "CostOutOfRange",
    "DamagedState",
    "EmptyPortfolio",
    "InvalidConfig",
    "NoAffordableModel",
    "NoAllowedModel",
    "NoCapableModel",
    "NonFiniteInput",
    "RewardOutOfRange",
    "RouterStateError",
    "UnknownRequest",
    "UnknownVerifier",
    "UnpricedModel",
    "UnusablePrior",
    "VerdictOutOfRange",
    "WrongContext",
    "WrongFamily",
]
