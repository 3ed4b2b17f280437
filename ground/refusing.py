"""Define what the kernel refuses, and the base of all that the core refuses.

They are defined here so that code which reads errors alone need not import the kernel and numpy.
"""

from __future__ import annotations


class RouterStateError(Exception):
    """Base of everything the core raises; `reason` is the dead letter's reason and a metric's
    label."""

    reason = "router_state_error"
    retriable = False


class NonFiniteInput(RouterStateError):
    """A number that would enter the state is a NaN or an infinity."""

    reason = "non_finite"


class WrongContext(RouterStateError):
    """The context has another dimension than the router, or its last entry is not 1.0."""

    reason = "wrong_context"


class CorruptSnapshot(RouterStateError):
    """The file that a router is to start from is damaged, truncated, foreign or of another
    format."""

    reason = "corrupt_snapshot"


class DamagedState(Exception):
    """A record of the state is not as it was written, or of a format that this program does not
    know. Whoever owns the record is set aside; no other exception of a reader means damage.

    It is no refusal of the core: no event is wrong.
    """
