"""Define the budget of labels, as declared, and draw the requests that are asked about."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

from msgspec import Struct

HOUR_SECONDS = 3_600.0
"""Seconds of an hour."""
SECONDS = {"hour": HOUR_SECONDS, "day": 24.0 * HOUR_SECONDS, "week": 168.0 * HOUR_SECONDS}
"""Length of the periods."""
FIRST = {"hour": 0.0, "day": 0.0, "week": 96.0 * HOUR_SECONDS}
"""Seconds from the epoch, a Thursday, to the begin of a period: weeks begin on Monday."""
DRAW = b"label wanted"
"""Makes these draws independent of others by the same request (`person` of BLAKE2, RFC 7693)."""
PERSON = ":"
"""Stands between people's source and the name of who labelled: `human:anna`."""


class LabelBudget(Struct, frozen=True, omit_defaults=True):
    """The budget of labels.

    Attributes:
        want: labels that people are asked for in a period; per: the period, in UTC.
        salt: makes the draws of two routers independent.
        people: the source of people's labels.
        steps: answers from 0 to 1 that a person may choose from; None: not declared.
        url: address of a request's answer in the team's own store, with {request_id} in it.
    """

    want: int
    per: Literal["hour", "day", "week"]
    salt: str
    people: str
    steps: int | None = None
    url: str | None = None

    @property
    def seconds(self) -> float:
        """Length of a period."""
        return SECONDS[self.per]

    def begins(self, at: float) -> float:
        """Return the begin of the period at a time, both in seconds since the epoch."""
        first = FIRST[self.per]
        return first + (at - first) // self.seconds * self.seconds

    def is_of_people(self, source: str) -> bool:
        """Tell whether a label of this source is a person's."""
        return source == self.people or source.startswith(self.people + PERSON)

    def place(self, request_id: str) -> float:
        """Return a number in [0, 1) of 53 bits, drawn by hash: a replay finds the same one."""
        text = f"{self.salt}\n{request_id}".encode()
        digest = blake2b(text, digest_size=8, person=DRAW).digest()
        return (int.from_bytes(digest, "big") >> 11) * 2.0**-53
