"""Define the errors of this library: refusals with their reason, and silence."""

from __future__ import annotations


class RouterError(Exception):
    """Base of this library's errors. `reason` is a stable code; `retriable` says whether the same
    call may succeed later.
    """

    reason = "router_error"
    retriable = False


class Refused(RouterError):
    """The service refused the request; `reason` is a code of its wire contract, such as
    `no_affordable_model`.
    """

    def __init__(self, reason: str, message: str, *, router_id: str, request_id: str) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.message = message
        self.router_id = router_id
        self.request_id = request_id


class NoDecision(RouterError):
    """No decision came within the timeout, and there is no fallback model. The same request_id may
    be asked for again.
    """

    reason = "no_decision"
    retriable = True

    def __init__(self, request_id: str, seconds: float) -> None:
        super().__init__(
            f"no decision on request {request_id} within {seconds:g} s, and there is no fallback: "
            "does a worker run (pbstream doctor), is the router declared (pbstream routers list)?"
        )
        self.request_id = request_id


class Undelivered(RouterError):
    """Kafka did not take an event in time. The event may be sent again: it counts once."""

    reason = "undelivered"
    retriable = True


class Unreachable(RouterError):
    """The service's topics cannot be reached: no broker answers, or a topic or a right is
    missing.
    """

    reason = "unreachable"
    retriable = True
