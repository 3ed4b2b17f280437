"""Classify a failed call by its error, and read how long to wait before the model's next call.

A failure counts against a model if the model, its provider or the network caused it. A mistake of
the caller does not count, as the call would have failed at any model of this kind.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

NAMES = {
    "gone": (
        "decommissioned",
        "modeldeprecated",
        "modelnotfound",
        "modelretired",
    ),
    "rate_limited": (
        "ratelimit",
        "toomanyrequests",
        "throttl",
        "quota",
        "resourceexhausted",
    ),
    "timeout": ("timeout", "timedout", "deadlineexceeded"),
    "refused": ("contentpolicy", "contentfilter", "responsibleaipolicy"),
    "cancelled": (
        "cancel",
        "clientdisconnect",
        "clientclosed",
        "aborterror",
        "generatorexit",
        "schemavalidation",  # LiteLLM's own check of an answer, which has come
    ),
}
"""Parts of errors' names, in letters alone, that say how a call ended whatever its code is."""
CALLERS_FAULT = (
    "accessdenied",
    "authentication",
    "badrequest",
    "budgetexceeded",
    "contextlength",
    "contextwindow",
    "expiredtoken",
    "forbidden",
    "guardrail",
    "imagefetch",
    "invalidapikey",
    "invalidargument",
    "invalidrequest",
    "permission",
    "rejectedrequest",
    "requesttoolarge",
    "stringabovemaxlength",
    "unauthenticated",
    "unauthorized",
    "unprocessable",
    "unrecognizedclient",
    "unsupportedparams",
    "validationexception",
)
"""Parts of the names of errors that the caller made, where there is no code."""
CODES = {
    **dict.fromkeys((400, 401, 403, 405, 406, 411, 413, 414, 415, 422, 431, 499), "cancelled"),
    **dict.fromkeys((408, 504, 524), "timeout"),
    410: "gone",
    429: "rate_limited",
}
"""Status by HTTP's code (499: nginx's, the client closed the connection); all others are errors."""
MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")
"""Headers beside `Retry-After` that providers write in milliseconds."""
_SECONDS = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|)\s*", re.IGNORECASE)


def status_of(name: str, code: object = None) -> str:
    """Return the status of a failed call, from its error's name and, if there is one, HTTP's code.

    A call that its caller made wrong, or took back, is `cancelled`: that says nothing about the
    model.

    >>> status_of("APIError", 429), status_of("ContextWindowExceededError", "400")
    ('rate_limited', 'cancelled')
    """
    letters = re.sub(r"[^a-z]", "", name.lower())
    for status, parts in NAMES.items():
        if any(part in letters for part in parts):
            return status
    number = str(code or "").strip() or name.strip()
    if number.isdecimal():
        return CODES.get(int(number), "error")
    return "cancelled" if any(part in letters for part in CALLERS_FAULT) else "error"


def retry_after_of(headers: Mapping[str, object], *, now: datetime) -> float | None:
    """Return the seconds for which a model asks not to be called; None: it names none.

    `Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3); some providers write
    fractions of a second. A provider's own header of milliseconds counts before it.
    """
    found = {str(name).lower(): _text(value) for name, value in headers.items()}
    for name in (*MILLISECONDS, "retry-after"):
        text = found.get(name, "")
        if matched := _SECONDS.fullmatch(text):
            scale = 1e-3 if name in MILLISECONDS or matched[2].lower() == "ms" else 1.0
            seconds = float(matched[1]) * scale
            return seconds if math.isfinite(seconds) else None
        if name == "retry-after" and text:
            return _until(text, now)
    return None


def _text(value: object) -> str:
    # A trace's attribute holds a header as a list of its values.
    first = value[0] if isinstance(value, list | tuple) and value else value
    return str(first)


def _until(text: str, now: datetime) -> float | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - now).total_seconds(), 0.0)
