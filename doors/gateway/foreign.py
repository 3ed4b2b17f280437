"""Take the payloads of other systems: each item of a payload is booked, passed over or refused by
itself. Refused items become dead letters.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from starlette.requests import Request

from doors.gateway.door import Door
from doors.gateway.http_events import report_of
from doors.gateway.problems import Problem
from doors.integrations.convert import Converted, Taken, convert, finder_of
from doors.integrations.payload_items import Defaults, NotCovered
from doors.integrations.remembered import Remembered
from ground.json_values import Document
from schemas import MalformedEvent, Reason

REMEMBERED = 10_000
"""Most routers and forms whose payloads are remembered; the one not used for longest is forgotten
first."""
ACCEPTED, SOME_ACCEPTED = 202, 207
"""HTTP status of a payload that was taken, and of one of which items were refused (RFC 4918,
11.1)."""


class ForeignPayloads:
    """The door for payloads of other systems.

    Args:
        door: the gateway's door, which admits callers and sends bills and rewards.
    """

    def __init__(self, door: Door) -> None:
        self._door = door
        self._one = asyncio.Lock()
        self._remembered: OrderedDict[tuple[str, str], Remembered] = OrderedDict()

    async def take(
        self, request: Request, router_id: str, form: str, scores: Sequence[str]
    ) -> tuple[int, Document]:
        """Book what a payload holds; return HTTP's status and the answer.

        Args:
            scores: names of the scores that become rewards; empty: the only score of the payload.

        Raises:
            Problem: nothing of it could be taken, or Kafka did not store it.
        """
        body, known = await self._door.body(request, router_id), self._of(router_id, form)
        try:
            # Aside: thousands of spans would hold up decisions. One after the other, as they share
            # what is remembered.
            async with self._one:
                found = await asyncio.to_thread(
                    convert,
                    body,
                    finder_of(form, Defaults(router_id)),
                    headers=dict(request.headers),
                    remembered=known,
                    scores=scores,
                    may=lambda named: self._door.may(request, named),
                )
        except MalformedEvent as error:
            await self._door.letters.keep(body, error, router_id=router_id, form=form)
            raise Problem.of(error) from None
        count = len(found.taken) + len(found.refused)
        self._door.admit(request, router_id, count=max(0, count - 1))
        await self._door.deliver([report_of(one.event) for one in found.taken])
        if found.refused:
            # The letter is kept last: a sender that gets an error sends the whole payload again,
            # which counts once.
            first = found.refused[0].error
            await self._door.letters.keep(found.letter, first, router_id=router_id, form=form)
            if not found.taken:
                errors = [one.as_json() for one in found.refused]
                why = "forbidden" if isinstance(first, NotCovered) else first.reason.value
                raise Problem(why, str(first), errors=errors)
        elif found.passed_over and not found.taken and (unmet := known.unmet(scores)):
            # Otherwise a mistyped name would be accepted for ever, and no label would be learned.
            wrong = MalformedEvent(Reason.INVALID_FIELD, unmet)
            await self._door.letters.keep(body, wrong, router_id=router_id, form=form)
            raise Problem.of(wrong)
        return SOME_ACCEPTED if found.refused else ACCEPTED, _answer(found)

    def _of(self, router_id: str, form: str) -> Remembered:
        found = self._remembered.setdefault((router_id, form), Remembered())
        self._remembered.move_to_end((router_id, form))
        while len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)
        return found


def _answer(found: Converted) -> Document:
    answer: Document = {"accepted": len(found.taken)}
    if found.refused:
        answer["booked"] = [_booked(one) for one in found.taken]
        answer["refused"] = [one.as_json() for one in found.refused]
    if found.passed_over:
        answer["passed_over"] = found.passed_over
    if found.warnings:
        answer["warnings"] = found.warnings
    return answer


def _booked(one: Taken) -> Document:
    return {"index": one.index, "topic": one.topic, "request_id": one.event.request_id}
