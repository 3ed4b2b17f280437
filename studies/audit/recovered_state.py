"""Recover one partition's state and dead letters, against which the topics are checked."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from agents.outbox import refusal_of
from agents.table import keys
from agents.table.parking import Parked
from agents.table.recovered import Recovered
from router_state.engine import Engine
from router_state.errors import DamagedState
from schemas.dlq import INGEST, VALUE_OMITTED, DeadLetter
from schemas.event import MalformedEvent
from schemas.topic_roles import SOURCES
from streams.changelog_format import EPOCH
from streams.state.table_partition import Partition
from studies.audit.findings import Findings, Kind
from studies.audit.topic_reading import Progress, Topics
from studies.history.records import Record


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: its reason, and the checksum of the event that it must copy. `checksum` None:
    the value was too large to be kept.

    `named`: the event's router can be read, so that its clients are told. `at`: time of the dead
        letter, which may differ between copies.
    """

    reason: str
    key: bytes | None
    checksum: int | None
    named: bool = field(compare=False)
    at: float = field(compare=False)


Letters = dict[tuple[str, int], dict[int, Letter]]
"""Dead letters, by short topic and partition of the source, then by offset."""


def checksum(value: bytes | None) -> int:
    """Return a checksum of a value; null differs from empty."""
    # CRC-32 is never negative, so null gets −1. It finds faults, not forgery.
    return -1 if value is None else zlib.crc32(value)


def read_letters(topics: Topics, read: Progress, findings: Findings, *, prefix: str) -> Letters:
    """Index all dead letters; several of one event must be alike."""
    letters: Letters = {}
    for partition in topics.partitions("dlq"):
        for record in read("dlq", partition):
            findings.checked["dlq"] += 1
            where = f"dlq-{partition} offset {record.offset}"
            try:
                letter = DeadLetter.from_headers(
                    (name, value.encode()) for name, value in record.headers.items()
                )
            except MalformedEvent as error:
                findings.violation(Kind.MALFORMED, where, str(error))
                continue
            if letter.stage == INGEST:  # of a topic that is not the service's
                continue
            place = letters.setdefault((letter.topic.removeprefix(prefix), letter.partition), {})
            omitted = VALUE_OMITTED in record.headers
            named = not omitted and refusal_of(record, letter, topic=letter.topic) is not None
            found = Letter(
                letter.reason,
                record.key,
                None if omitted else checksum(record.value),
                named,
                record.timestamp,
            )
            # A crash may deliver a dead letter twice; both copies must agree.
            if place.setdefault(letter.offset, found) != found:
                findings.violation(
                    Kind.LETTER_ALTERED,
                    where,
                    "another dead letter of the same event says otherwise",
                )
    return letters


@dataclass(slots=True)
class Evidence:
    """The state and the dead letters of one partition.

    Attributes:
        number: the partition.
        state: its state, as the next owner would recover it.
        letters: dead letters of its source events, by short topic and offset.
        waiting: source events that wait, or whose refusal is still to be delivered, by short topic
            and offset.
        watermarks: last offset of each source topic that the state contains, by its short name.
        served_until: time at which the partition last applied an event, seconds since the epoch; 0:
            never.
        written: time at which each router's state was last written.
        untaken: by short topic, the number of events after those that the state contains, and the
            time of the oldest; only of topics that were read.
    """

    number: int
    state: Recovered
    letters: dict[str, dict[int, Letter]]
    waiting: dict[str, dict[int, Parked]]
    watermarks: dict[str, int]
    served_until: float
    written: dict[str, float]
    engines: dict[str, Engine] = field(default_factory=dict)
    untaken: dict[str, tuple[int, float]] = field(default_factory=dict)

    def contained(self, topic: str, read: Progress) -> Iterator[Record]:
        """Read the source events that the state contains, and count the others."""
        last, count, oldest = self.watermarks.get(topic, -1), 0, inf
        for record in read(topic, self.number):
            if record.offset <= last:
                yield record
            else:
                count, oldest = count + 1, min(oldest, record.timestamp)
        self.untaken[topic] = count, oldest

    def check_letter(self, topic: str, record: Record, findings: Findings) -> bool:
        """Tell whether an event has a dead letter, and check that it is a copy of the event."""
        letter = self.letters[topic].get(record.offset)
        if letter is None:
            return False
        if letter.key != record.key or letter.checksum not in (None, checksum(record.value)):
            where = f"{topic}-{self.number} offset {record.offset}"
            findings.violation(
                Kind.LETTER_ALTERED,
                where,
                "the dead letter does not hold the source's key and bytes",
            )
        return True


def gather(
    number: int, read: Progress, letters: Letters, findings: Findings, *, names: Mapping[str, str]
) -> Evidence | None:
    """Recover a partition's state; None if it can't be read at all.

    Args:
        names: the short names of source topics by their full ones.

    Raises:
        ForeignState: it is the state of another service.
    """
    # Recovered by the workers' own code: another reader would prove only itself.
    partition = Partition(number)
    written: dict[bytes, float] = {}
    for record in read("changelog", number):
        findings.checked["changelog"] += 1
        if record.key is None:
            findings.violation(
                Kind.CORRUPT, f"changelog-{number} offset {record.offset}", "a record without a key"
            )
            continue
        if record.key[:1] in (keys.HEAD, keys.WATERMARKS):
            written[record.key] = record.timestamp
        partition.recover(
            record.key,
            record.value,
            offset=record.offset,
            # Records of a fenced-off owner do not count, here as in a recovery.
            epoch=int(record.headers.get(EPOCH, "0")),
        )
    try:
        state = Recovered(partition)
    except DamagedState as error:
        findings.violation(
            Kind.CORRUPT, f"partition {number}", f"the index of its routers: {type(error).__name__}"
        )
        return None
    state.watermarks.require_topics(names)
    waiting: dict[str, dict[int, Parked]] = {name: {} for name in SOURCES}
    for parked in state.parking:
        waiting[names[parked.topic]][parked.offset] = parked
    evidence = Evidence(
        number,
        state,
        {name: letters.get((name, number), {}) for name in SOURCES},
        waiting,
        {names[topic]: offset for topic, offset in state.watermarks.offsets.items()},
        written.pop(keys.WATERMARKS, 0.0),
        {keys.split(key)[1]: at for key, at in written.items()},
    )
    _unpack(evidence, findings)
    return evidence


def _unpack(evidence: Evidence, findings: Findings) -> None:
    for router_id in evidence.state.routers:
        findings.checked["routers"] += 1
        engine = evidence.state.routers.engine(router_id)
        if engine is None:
            findings.violation(
                Kind.CORRUPT, f"router {router_id}", evidence.state.routers.unreadable[router_id]
            )
            continue
        if not evidence.state.table.get(keys.key(keys.HEAD, router_id)):
            findings.violation(
                Kind.CORRUPT, f"router {router_id}", "its requests are there, its head is not"
            )
            continue
        evidence.engines[router_id] = engine
