"""Define the refusals of agents, beyond those of schemas and core."""

from __future__ import annotations

from typing import cast

from schemas.reasons import Reason


class Refusal(Exception):
    """Base of refusals: an event gets a dead letter."""

    reason = Reason.INTERNAL_ERROR
    retriable = False


class InternalError(Refusal):
    """The worker failed on one event; the group was rolled back, and the event may be tried
    again."""

    reason = Reason.INTERNAL_ERROR


class UnknownRouter(Refusal):
    """No router of this id was declared in time."""

    reason = Reason.UNKNOWN_ROUTER


class RouterUnreadable(Refusal):
    """The router's state is damaged, or was written by another version of the program."""

    reason = Reason.ROUTER_UNREADABLE


class OrphanCost(Refusal):
    """No decision of the bill's request appeared in time."""

    reason = Reason.ORPHAN_COST


class OrphanReward(Refusal):
    """No decision of the reward's request appeared in time."""

    reason = Reason.ORPHAN_REWARD


class EncoderUnavailable(Refusal):
    """A prompt came, and this worker has no encoder for its router."""

    reason = Reason.ENCODER_UNAVAILABLE


class PromptTooLarge(Refusal):
    """The prompt is larger than this worker takes."""

    reason = Reason.PROMPT_TOO_LARGE


class WrongDimensions(Refusal):
    """The worker's contexts have another number of dimensions than the router's."""

    reason = Reason.WRONG_CONTEXT


class FromTheFuture(Refusal):
    """`observed_at` is too far ahead of the worker's clock."""

    reason = Reason.FROM_THE_FUTURE


class StaleConfig(Refusal):
    """The declaration was based on a declaration that is no longer in force."""

    reason = Reason.STALE_CONFIG


class TooManyModels(Refusal):
    """The portfolio has more models than a router may have."""

    reason = Reason.TOO_MANY_MODELS


class TooManyRouters(Refusal):
    """The worker holds the largest allowed number of routers."""

    reason = Reason.TOO_MANY_ROUTERS


class TooManyInFlight(Refusal):
    """The router has the largest allowed number of requests whose bill is awaited."""

    reason = Reason.TOO_MANY_IN_FLIGHT


class WrongPrior(Refusal):
    """A prior can't be read, or does not fit the router."""

    reason = Reason.WRONG_PRIOR


class WrongProjection(Refusal):
    """A projection can't be read, does not fit the router, or would change its coordinates."""

    reason = Reason.WRONG_PROJECTION


class Refused(Refusal):
    """An event was refused before, and its dead letter is to be delivered again."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        # A newer worker may have had reasons that this one does not know.
        self.reason = cast("Reason", reason)
