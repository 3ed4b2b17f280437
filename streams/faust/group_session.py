"""Track whether this worker is still a member of its group: a suspended or disconnected one may
have been replaced.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

LOOK_EVERY = 0.05
"""Seconds between two looks at whether the session was renewed."""


class MembershipLost(Exception):
    """The group has dropped this worker; its partitions may be others' by now."""

    reason = "membership_lost"
    retriable = False


class GroupSession:
    """A worker's session in its group, counted from the sending of the last confirmed heartbeat.

    Nothing is written or published without a session. A broker that is away does not renew the
    session, so writers wait for the group's answer when it is back. Epochs of the changelog catch
    writes that a suspension between this check and the broker lets through.

    Args:
        seconds: the session timeout.
    """

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._until = self._heard = clock()
        self._member = False
        self._losses = 0

    def join(self) -> None:
        """Note that the group has just given this worker its partitions."""
        self._member = True
        self._heard = self._clock()
        self.renew(self._heard)

    def extend(self, seconds: float) -> None:
        """Note that the group grants longer sessions than the worker asked for."""
        self._seconds = seconds

    def renew(self, sent: float) -> float:
        """Note that the group has confirmed a heartbeat, and return the seconds since the one
        before it.

        Args:
            sent: when the heartbeat was sent, on the session's clock.
        """
        gap = max(0.0, sent - self._heard)
        self._heard = max(self._heard, sent)
        # The session counts from the sending of the heartbeat: the group counts from its receipt,
        # which is later.
        self._until = max(self._until, sent + self._seconds)
        return gap

    @property
    def is_member(self) -> bool:
        """Tell whether the group is known to have this worker as a member."""
        return self._member

    @property
    def silence(self) -> float:
        """Return the seconds since the last confirmed heartbeat was sent; 0 if this worker is not
        a member.
        """
        return max(0.0, self._clock() - self._heard) if self._member else 0.0

    def lose(self) -> None:
        """Note that the group does not know this member any more."""
        self._member = False
        self._losses += 1

    async def held(self) -> None:
        """Return at once while the session lasts; wait if that is not known.

        Raises:
            MembershipLost: the group has ended it, since this call or before it.
        """
        # Losses are counted, as a flag would not do: while a writer waits here, the group may drop
        # this worker and accept it again. What the writer wants to write belongs to the earlier
        # membership.
        losses = self._losses
        while self._member and losses == self._losses and self._clock() >= self._until:
            await self._sleep(LOOK_EVERY)
        if not self._member or losses != self._losses:
            raise MembershipLost("the group has gone on without this worker")
