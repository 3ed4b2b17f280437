"""Read the source topics of one partition, one record ahead, and decode them when a merge asks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agents.members.exchange_grants import grant_of
from agents.members.kin_notes import prior_of
from router_state.families.family_reports import MemberPrior
from router_state.periods.holdings import Granted
from schemas.event import MalformedEvent, decode
from schemas.headers import epoch_of
from schemas.kin import KinNoted
from schemas.leases import LeaseNoted
from schemas.quick import Request
from schemas.reasons import Reason
from schemas.routers import decode_router
from studies.history.happened import Declared
from studies.history.reading import READERS
from studies.history.records import Record
from studies.history.skipped import Skipped

MAX_WAITING = 100_000
"""Most events that are kept until their decision is read."""


class Cursor:
    """A cursor over one topic of a partition that shows the next record. It skips refused records
    and counts missing offsets.
    """

    def __init__(
        self, records: Iterator[Record], *, refused: set[int], where: str | None, skipped: Skipped
    ) -> None:
        self._records = records
        self._refused = refused
        self._where = where
        self._skipped = skipped
        self._expected = 0
        self._holes: list[tuple[int, int]] = []
        self.head: Record | None = None
        self.advance()

    def advance(self) -> None:
        """Move to the next record."""
        for record in self._records:
            offset = record.offset
            if offset != self._expected:
                if self._where is None:
                    self._holes.append((self._expected, offset))
                else:
                    self._count_hole(self._where, offset)
            self._expected = offset + 1
            # The refusal is on the log, so checks that depend on the clock need not be repeated.
            if not self._refused or offset not in self._refused:
                self.head = record
                return
        self.head = None

    def has_hole(self, after: int, before: int) -> bool:
        """Tell whether compaction has removed a record between two offsets."""
        # Nearly always there is none.
        holes = self._holes
        return bool(holes) and any(first < before and after + 1 < end for first, end in holes)

    def _count_hole(self, where: str, offset: int) -> None:
        first = self._expected
        reason = (
            "offsets are missing, as retention or a range leaves it"
            if first == 0
            else "offsets are missing in between"
        )
        self._skipped.skip(f"{where}: {reason}", f"{first} to {offset - 1}", offset - first)


class Decoder:
    """Decode a partition's records, of one router or of all routers, and count the unreadable
    ones.
    """

    def __init__(self, partition: int, router_id: str | None, skipped: Skipped) -> None:
        self.partition = partition
        self._key = None if router_id is None else router_id.encode()
        self._skipped = skipped
        # Router and key of the last event: those of the next one are nearly always the same.
        self._last: str | None = None
        self._last_key: bytes | None = None

    def event(self, topic: str, record: Record) -> Any:
        """Return the event of a record, or None where it is of another router or can't be read."""
        key, only = record.key, self._key
        # Chosen by key, before decoding: a partition has many routers.
        if only is not None and key is not None and key != only:
            return None
        try:
            event = READERS[topic](record.value)
        except MalformedEvent as error:
            self._skip(error.reason, topic, record)
            return None
        router_id = event.router_id
        if router_id == self._last and key == self._last_key:
            return event
        router = router_id.encode()
        if key is not None and router != key:
            self._skip(Reason.WRONG_KEY, topic, record)
            return None
        if only is not None and router != only:
            return None
        self._last, self._last_key = router_id, key
        return event

    def _skip(self, reason: Reason, topic: str, record: Record) -> None:
        self._skipped.skip(
            f"malformed ({reason.value})", f"{topic}-{self.partition} offset {record.offset}"
        )

    def declaration(self, record: Record) -> Declared | None:
        """Return a declaration, or None where it is of another router or can't be read."""
        if self._key is not None and record.key is not None and record.key != self._key:
            return None
        try:
            router_id, router = decode_router(key=record.key, value=record.value)
        except MalformedEvent as error:
            self._skip(error.reason, "routers", record)
            return None
        return Declared(router_id, record.offset, record.timestamp, router)


def grants_of(records: Iterable[Record]) -> dict[int, Granted]:
    """Return the grants that pools gave to routers, by the offsets of their records."""
    found = {}
    for record in records:
        try:
            note = decode(LeaseNoted, record.value)
        except MalformedEvent:
            continue
        if note.kind == "grant":
            headers = ((name, text.encode()) for name, text in record.headers.items())
            found[record.offset] = grant_of(note, offset=record.offset, epoch=epoch_of(headers))
    return found


def priors_of(records: Iterable[Record]) -> dict[int, MemberPrior]:
    """Return the priors that families sent to routers, by the offsets of their records."""
    found = {}
    for record in records:
        try:
            note = decode(KinNoted, record.value)
        except MalformedEvent:
            continue
        if note.kind == "prior":
            found[record.offset] = prior_of(note, offset=record.offset)
    return found


class Requests:
    """The requests of a partition, found by their decisions.

    Args:
        is_decided: function that tells whether a request of a router was decided before: such a
            request came again.
    """

    def __init__(
        self,
        cursor: Cursor,
        decoder: Decoder,
        skipped: Skipped,
        is_decided: Callable[[str, str], bool],
    ) -> None:
        self._cursor = cursor
        self._decoder = decoder
        self._skipped = skipped
        self._is_decided = is_decided
        self._waiting: OrderedDict[tuple[str, str], tuple[int, Request]] = OrderedDict()
        # Requests with an id that was decided before; a worker that forgot the first one decides
        # again.
        self._again: OrderedDict[int, Request] = OrderedDict()

    def of(self, router_id: str, request_id: str, offset: int | None = None) -> Request | None:
        """Return a request, reading on until it is found; None if it is not there.

        Args:
            offset: offset of the request; None or −1: the first undecided request with this id.
        """
        waiting = self._waiting
        wanted = None if offset == -1 else offset
        found = waiting.get((router_id, request_id)) if waiting else None
        if found is not None and wanted in (None, found[0]):
            del waiting[router_id, request_id]
            return found[1]
        if self._again and wanted is not None:
            again = self._again.pop(wanted, None)
            if again is not None:
                return again
        cursor, decode = self._cursor, self._decoder.event
        while (record := cursor.head) is not None:
            cursor.advance()
            request: Request | None = decode("requests", record)
            if request is None:
                continue
            if (
                request.request_id == request_id
                and request.router_id == router_id
                and wanted in (None, record.offset)
            ):
                return request
            if (
                self._is_decided(request.router_id, request.request_id)
                or (request.router_id, request.request_id) in waiting
            ):
                self._again[record.offset] = request
                if len(self._again) > MAX_WAITING:
                    self._again.popitem(last=False)
                continue
            # The first of an id was decided, as in the worker: refused ones never came to here.
            waiting[request.router_id, request.request_id] = record.offset, request
            if len(waiting) > MAX_WAITING:
                (_, lost), _ = waiting.popitem(last=False)
                self._skipped.skip("requests without a decision", f"request {lost}")
        return None
