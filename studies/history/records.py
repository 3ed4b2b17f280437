"""Records of a history, by partition and in order of offsets, in Kafka or in a folder of JSONL
files.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import orjson
from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from ground.json_text import halved
from schemas.dlq import SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC
from streams.partitioner import partition_of

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
"""Headers of all records that have none, shared."""
NO_JSON = (MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of decoding bytes that are not the expected JSON."""
OPAQUE = (b'{"base64"', b"null")
"""Beginnings of values that are no events."""
SOURCES = ("routers", "requests", "routes", "costs", "rewards", "leases", "kin", "dlq")
"""Topics of a history."""


class Record(Struct, frozen=True, gc=False):
    """One record of a topic; `timestamp` in seconds since the epoch."""

    offset: int
    timestamp: float
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, str]


class History(Protocol):
    """A source of a service's past records. Topics go by their short names."""

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic; dead letters may have more or fewer than the others."""
        ...

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records, oldest first."""
        ...


def framed(*parts: bytes) -> bytes:
    """Return byte strings in a row, each after its length (8 bytes, big-endian), so that a digest
    tells `ab`, `c` from `a`, `bc`."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def partitions_of(history: History, router_id: str | None) -> list[int]:
    """Return the partitions that may hold decisions of a router (None: of any)."""
    numbers = history.partitions()
    # An export may lack partitions: then neither their number nor the router's partition is known.
    if router_id is None or numbers != list(range(len(numbers))):
        return numbers
    return [partition_of(router_id, len(numbers))]


def routers_of(history: History) -> list[str]:
    """Return the routers that a history declares."""
    keys = {
        record.key
        for partition in history.partitions()
        for record in history.read("routers", partition)
    }
    return sorted(key.decode(errors="replace") for key in keys if key is not None)


def refused_offsets(history: History) -> dict[tuple[str, int], set[int]]:
    """Return the offsets of the source events that were refused, by short topic name and
    partition.
    """
    refused: dict[tuple[str, int], set[int]] = {}
    for partition in history.partitions("dlq"):
        for record in history.read("dlq", partition):
            topic = record.headers.get(SOURCE_TOPIC, "").rpartition(".")[2]
            if topic in SOURCES:
                place = topic, int(record.headers.get(SOURCE_PARTITION, "-1"))
                refused.setdefault(place, set()).add(int(record.headers.get(SOURCE_OFFSET, "-1")))
    return refused


class Line(Struct, gc=False):
    """A line of an export; the event in it stays as it is."""

    offset: int
    timestamp: float
    value: Raw
    key: str | None = None
    headers: dict[str, str] | None = None


class BrokenLine(Exception):
    """A line of an export can't be read."""

    reason = "broken_line"
    retriable = False


class JsonlHistory:
    """A folder with a file `TOPIC-PARTITION.jsonl` per topic and partition, as `write_jsonl` writes
    them.

    A line is `{"offset", "timestamp", "key", "value"}`, with `headers` where there are some.
    `value` is the event itself; a value that is not JSON is written as `{"base64": …}`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not any(folder.glob("requests-*.jsonl")):
            raise FileNotFoundError(2, "no requests-PARTITION.jsonl in this folder", str(folder))

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic that have a file."""
        files = self._folder.glob(f"{topic}-*.jsonl")
        return sorted(int(path.stem.rpartition("-")[2]) for path in files)

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records; none where there is no file.

        Raises:
            BrokenLine: one can't be read.
        """
        path = self._folder / f"{topic}-{partition}.jsonl"
        if not path.exists():
            return
        decode = Decoder(Line).decode
        key, encoded = None, None
        with path.open("rb", buffering=2**18) as lines:
            for number, text in enumerate(lines, 1):
                if text == b"\n":
                    continue
                try:
                    line = decode(text)
                except NO_JSON as error:
                    line = _halved(decode, text, f"{path}, line {number}: {error}")
                # Keys of one router come by the thousand.
                if line.key != key:
                    key, encoded = line.key, None if line.key is None else line.key.encode()
                value = bytes(line.value)
                yield Record(
                    line.offset,
                    line.timestamp,
                    encoded,
                    # Recognised by its first bytes, as nearly all values are events and stay
                    # unparsed.
                    _opaque(value) if value.startswith(OPAQUE) else value,
                    line.headers or NO_HEADERS,
                )


def _halved(decode: Callable[[bytes], Line], text: bytes, why: str) -> Line:
    """Return a line whose prompt holds half of a character, which a worker replaces. Raises
    BrokenLine."""
    try:
        if (found := halved(text)) is not None:
            return decode(found[1])
    except NO_JSON:
        pass
    raise BrokenLine(why) from None


def _opaque(value: bytes) -> bytes | None:
    """Return a value that is no JSON object: null, or bytes in base 64."""
    body = orjson.loads(value)
    return base64.b64decode(body["base64"]) if _is_opaque(body) else None if body is None else value


def _is_opaque(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"base64"}


def write_jsonl(records: Iterable[Record], path: Path) -> int:
    """Write records as lines; return how many."""
    written = 0
    with path.open("wb") as file:
        for record in records:
            file.write(line_of(record))
            written += 1
    return written


def line_of(record: Record) -> bytes:
    """Return a record as its line of an export."""
    body: dict[str, object] = {"offset": record.offset, "timestamp": record.timestamp}
    if record.key is not None:
        body["key"] = record.key.decode(errors="replace")
    try:
        body["value"] = None if record.value is None else orjson.Fragment(_checked(record.value))
    except orjson.JSONDecodeError:
        body["value"] = {"base64": base64.b64encode(record.value or b"").decode()}
    if record.headers:
        body["headers"] = dict(record.headers)
    return orjson.dumps(body) + b"\n"


def _checked(value: bytes) -> bytes:
    """Return valid JSON on one line. Raises orjson.JSONDecodeError."""
    loaded = orjson.loads(value)
    # Unchanged bytes if they fit on a line, so that a replay reads what the worker read.
    return orjson.dumps(loaded) if b"\n" in value or _is_opaque(loaded) else value
