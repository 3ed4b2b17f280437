"""A hash chain over the decisions. Whoever keeps the chain's file can find records that were
removed or changed after the chain was written.

The chain of a partition has a link for each thousand records of `routes`, and one for the rest of a
run. A link's digest is SHA-256 over the digest of the link before it and its own records, so that
no link can be changed alone. The file is only ever appended to.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby, islice
from pathlib import Path

import msgspec
import orjson

from studies.audit.findings import Findings, Kind
from studies.audit.topic_reading import Progress, Topics
from studies.history.records import Record, framed

FORMAT = 1
"""Version of the file's form."""
LINK_RECORDS = 1000
"""Most records of a link: a change is located to within this many records, and a file takes some
0.15 bytes for each decision."""


class BrokenChain(Exception):
    """The file is no chain of this service."""


class Link(msgspec.Struct, frozen=True):
    """One line of the file.

    Attributes:
        first, next: the offset at which the link begins, and the one after its last record.
        records: the number of records.
        sha256: the digest of the link before this one and of the records.
    """

    partition: int
    first: int
    next: int
    records: int
    sha256: str


def digest_of(before: str, records: Iterable[Record]) -> str:
    """Return the digest of a link: of the digest before it, and of each record's offset, time, key,
    value and headers."""
    digest = sha256(before.encode())
    for record in records:
        headers = (part for pair in record.headers.items() for part in pair)
        texts = (str(record.offset), str(round(record.timestamp * 1e3)), *headers)
        parts = (text.encode() for text in texts)
        digest.update(framed(*parts, record.key or b"", record.value or b"") + b"\n")
    return digest.hexdigest()


class ChainFile:
    """The file of a chain. Raises BrokenChain: the file is no chain, or belongs to another
    service.
    """

    def __init__(self, path: Path, topic: str) -> None:
        self._path, self._topic = path, topic
        self.links: dict[int, list[Link]] = {}
        text = path.read_bytes() if path.exists() else b""
        # A run that was killed may have left the beginning of a line.
        self._whole = text.rfind(b"\n") + 1
        lines = text[: self._whole].splitlines()
        try:
            head = orjson.loads(lines[0]) if lines else self._head()
            if (head["format"], head["topic"]) != (FORMAT, topic):
                raise BrokenChain(f"{path}: this is not a chain of {topic} in format {FORMAT}")
            for line in lines[1:]:
                link = msgspec.json.decode(line, type=Link)
                self.links.setdefault(link.partition, []).append(link)
        except (ValueError, KeyError, TypeError, msgspec.DecodeError) as error:
            raise BrokenChain(f"{path}: a line is none of a chain's: {error}") from None

    def _head(self) -> dict[str, object]:
        made_by = f"paretobandit-streams {version('paretobandit-streams')}"
        return {"format": FORMAT, "topic": self._topic, "made_by": made_by}

    def append(self, links: Iterable[Link]) -> None:
        """Write new links behind those that are there."""
        lines = [msgspec.json.encode(link) for link in links]
        if not self._whole:
            lines.insert(0, orjson.dumps(self._head()))
        with self._path.open("r+b" if self._path.exists() else "xb") as file:
            file.truncate(self._whole)
            file.seek(self._whole)
            self._whole += file.write(b"".join(line + b"\n" for line in lines))


def follow(file: ChainFile, topics: Topics, read: Progress, findings: Findings) -> list[Link]:
    """Check the links of a file against the topic, and return the links of the records that came
    since."""
    numbers = topics.partitions("routes")
    for missing in file.links.keys() - set(numbers):
        findings.violation(Kind.CHAIN, f"routes-{missing}", "the partition is no longer there")
    new: list[Link] = []
    for number in numbers:
        chain = _Chain(number, file.links.get(number, []), findings)
        new += chain.follow(read("routes", number), topics.begin("routes", number))
    return new


class _Chain:
    """The chain of one partition."""

    def __init__(self, partition: int, links: list[Link], findings: Findings) -> None:
        self._partition, self._links, self._findings = partition, links, findings
        self._where = f"routes-{partition}"

    def follow(self, records: Iterator[Record], begin: int) -> Iterator[Link]:
        """Compare the links with the records of the partition, whose log begins at an offset."""
        links = self._links
        deleted = sum(link.first < begin for link in links)
        self._tell_deleted(deleted, begin)
        ends = [link.next for link in links]
        gone = set(range(deleted, len(links)))
        # The digest before each link stands in the file, so each link is compared by itself.
        for at, group in groupby(records, lambda record: bisect(ends, record.offset)):
            if at == len(links):
                yield from self._new_links(group, max([begin, *ends[-1:]]))
            elif at in gone:
                gone.remove(at)
                self._compare(at, list(group))
        for at in sorted(gone):
            self._compare(at, [])

    def _before(self, at: int) -> str:
        return self._links[at - 1].sha256 if at else ""

    def _compare(self, at: int, records: list[Record]) -> None:
        link = self._links[at]
        self._findings.checked["records_compared"] += len(records)
        if digest_of(self._before(at), records) != link.sha256:
            self._findings.violation(
                Kind.CHAIN,
                f"{self._where} offsets {link.first} to {link.next - 1}",
                f"{link.records} records were chained, {len(records)} are there: one was removed "
                "or changed",
            )

    def _new_links(self, records: Iterator[Record], first: int) -> Iterator[Link]:
        before = self._before(len(self._links))
        while chunk := list(islice(records, LINK_RECORDS)):
            before, after = digest_of(before, chunk), chunk[-1].offset + 1
            self._findings.checked["records_chained"] += len(chunk)
            yield Link(self._partition, first, after, len(chunk), before)
            first = after

    def _tell_deleted(self, deleted: int, begin: int) -> None:
        if deleted:
            self._findings.unprovable(
                "chained_records_deleted",
                self._where,
                f"retention has deleted records of {deleted} links, all before offset {begin}",
            )
        chained = self._links[-1].next if self._links else 0
        if chained < begin:
            self._findings.unprovable(
                "deleted_before_chained",
                self._where,
                f"retention had deleted offsets {chained} to {begin - 1} before they were chained",
            )
