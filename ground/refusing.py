"""Define what the kernel refuses, and the base of all that the core refuses.

Here, as whoever reads errors alone need not wait for the kernel and numpy.
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
    """Bytes that claim to be a snapshot are damaged, truncated, foreign or newer than this code."""

    reason = "corrupt_snapshot"
