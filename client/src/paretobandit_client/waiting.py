"""Track requests that wait for their decision; several callers may wait for the same one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from paretobandit_client.client_errors import Refused
from paretobandit_client.sent_events import Refusal, Route

Ref = tuple[str, str]
Place = tuple[int, int]
"""Partition and offset; −1 where Kafka did not say."""
REMEMBERED = 10_000
"""Most abandoned requests that are remembered, to count late decisions."""


class Waiting:
    """The callers that wait for a decision, by request.

    Attributes:
        late: number of decisions for which nobody waited any more.
    """

    def __init__(self) -> None:
        self._futures: dict[Ref, asyncio.Future[Route]] = {}
        self._callers: dict[Ref, int] = {}
        self._placed: dict[Ref, set[Place]] = {}
        self._early: dict[Ref, Refusal] = {}
        self._given_up: OrderedDict[Ref, None] = OrderedDict()
        self.late = 0

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self, ref: Ref, *, seconds: float | None) -> Route:
        """Return the decision; call before the request is sent.

        Raises:
            TimeoutError: it did not come in time.
            Refused: the request was refused.
        """
        future = self._futures.setdefault(ref, asyncio.get_running_loop().create_future())
        self._callers[ref] = self._callers.get(ref, 0) + 1
        try:
            return await asyncio.wait_for(asyncio.shield(future), seconds)
        except TimeoutError:
            self._give_up(ref)
            raise
        finally:
            self._leave(ref, future)

    def placed(self, ref: Ref, place: Place) -> None:
        """Note the offset of one copy of a request. A refusal at another offset is about a copy of
        another sender.
        """
        if ref in self._futures:
            self._placed.setdefault(ref, set()).add(place)
            if (early := self._early.pop(ref, None)) is not None:
                self.refused(early)

    def decided(self, route: Route) -> None:
        """Give a decision to its waiting callers."""
        ref = (route.router_id, route.request_id)
        future = self._futures.get(ref)
        if future is not None and not future.done():
            future.set_result(route)
        # None marks a request that was given up; `self` one that was never here.
        elif future is None and self._given_up.pop(ref, self) is None:
            self.late += 1

    def refused(self, refusal: Refusal) -> bool:
        """Raise a refusal for the callers that wait for its request. Return false if the refusal is
        surely about no request of this process.
        """
        ref = (refusal.router_id, refusal.request_id or "")
        future, places = self._futures.get(ref), self._placed.get(ref)
        if refusal.topic != "requests" or future is None or future.done():
            return False
        if places is None:
            self._early[ref] = refusal  # it overtook Kafka's acknowledgement
        elif (refusal.partition, refusal.offset) in places or any(
            offset < 0 for _, offset in places
        ):
            why = {"router_id": refusal.router_id, "request_id": ref[1]}
            future.set_exception(Refused(refusal.reason, refusal.message, **why))
        else:
            return False
        return True

    def _give_up(self, ref: Ref) -> None:
        self._given_up[ref] = None
        while len(self._given_up) > REMEMBERED:
            self._given_up.popitem(last=False)

    def _leave(self, ref: Ref, future: asyncio.Future[Route]) -> None:
        left = self._callers.get(ref, 1) - 1
        if left > 0:
            self._callers[ref] = left
            return
        self._callers.pop(ref, None)
        self._placed.pop(ref, None)
        self._early.pop(ref, None)
        self._futures.pop(ref, None)
        if not future.done():
            future.cancel()
        elif not future.cancelled():
            future.exception()  # seen, also where every caller was cancelled
