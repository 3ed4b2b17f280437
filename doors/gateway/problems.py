"""Answer errors as problem+json (RFC 9457), with the reasons of the wire contract and a few of
HTTP's.
"""

from __future__ import annotations

import orjson
from starlette.responses import Response

from ground.json_values import Document, Json
from paretobandit_client import Refused
from schemas import MalformedEvent, Reason

MEDIA_TYPE = "application/problem+json"
"""Media type of a problem (RFC 9457)."""
OWN = {
    "unauthorized": (401, "The request carries no valid API key."),
    "forbidden": (
        403,
        "The API key does not cover this router; or there are no keys, and the request is not "
        "one of a program on this machine.",
    ),
    "not_found": (404, "There is nothing at this path."),
    "method_not_allowed": (405, "This path does not take this method."),
    "request_timeout": (408, "The request was not sent completely in time."),
    "body_too_large": (413, "The body is larger than this gateway takes."),
    "too_many_events": (413, "The batch has more events than this gateway takes."),
    "unsupported_media_type": (
        415,
        "The body is not plain JSON: send `Content-Type: application/json`, not compressed; "
        "payloads of other systems may be packed with gzip.",
    ),
    "rate_limited": (
        429,
        "The caller has used up its allowance; `Retry-After` says when to come again.",
    ),
    "internal_error": (500, "The gateway failed on this request alone: a defect, to be reported."),
    "undelivered": (503, "Kafka did not store the event in time. Sending it again does no harm."),
    "no_decision": (
        504,
        "Kafka has the request, and no decision came in time. Send the same `request_id` again.",
    ),
}
"""HTTP status and meaning of the reasons that only the gateway has."""
STATUS = {
    Reason.UNKNOWN_ROUTER: 404,
    Reason.CAP_REACHED: 429,
    Reason.BUDGET_SPENT: 429,
    Reason.TOO_MANY_IN_FLIGHT: 429,
    Reason.TOO_MANY_ROUTERS: 503,
    Reason.ENCODER_UNAVAILABLE: 503,
    Reason.PROMPT_TOO_LARGE: 413,
    Reason.MALFORMED_JSON: 400,
    Reason.INTERNAL_ERROR: 500,
}
"""HTTP status of the service's reasons; all others have `UNPROCESSABLE`."""
UNPROCESSABLE = 422
"""HTTP status of an event that was read and refused (RFC 9110, 15.5.21)."""


class Problem(Exception):
    """An error response to a request."""

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        headers: dict[str, str] | None = None,
        **members: object,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.headers = headers
        self.members = members

    @classmethod
    def of(cls, error: Refused | MalformedEvent, **members: Json) -> Problem:
        """Return the problem for a refusal."""
        # Looked up by the code's text: a newer service may have codes that are not in `Reason`.
        return cls(str(error.reason), error.message, **members)

    def body(self) -> Document:
        """Return the members of the JSON body."""
        status, title = _meaning(self.reason)
        body = {
            "type": f"urn:paretobandit:{self.reason}",
            "title": title,
            "status": status,
            "reason": self.reason,
        }
        return {**body, **({"detail": self.detail} if self.detail else {}), **self.members}

    def response(self) -> Response:
        """Return the HTTP response."""
        body = self.body()
        return Response(
            orjson.dumps(body), body["status"], headers=self.headers, media_type=MEDIA_TYPE
        )


def _meaning(reason: str) -> tuple[int, str]:
    if reason in OWN:
        return OWN[reason]
    known = next((one for one in Reason if one.value == reason), None)
    if known is None:  # of a newer service
        return UNPROCESSABLE, "The service refused the event."
    return STATUS.get(known, UNPROCESSABLE), known.meaning
