"""Records of a history, partition by partition, in order of their offsets; a folder of JSONL files holds them without Kafka."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import orjson
from aiokafka.partitioner import murmur2

from schemas.dlq import SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
SOURCES = ("routers", "requests", "routes", "costs", "rewards", "dlq")


class Record(NamedTuple):
    """One record of a topic; `timestamp` in seconds since the epoch, `value` as bytes or as the JSON that it is."""

    offset: int
    timestamp: float
    key: bytes | None
    value: Any
    headers: Mapping[str, str]


class History(Protocol):
    """The topics of a service as they were. Topics go by their short names."""

    def partitions(self) -> list[int]:
        """Return the partitions that hold requests."""
        ...

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records, oldest first."""
        ...


def partitions_of(history: History, router_id: str | None) -> list[int]:
    """Return the partitions that may hold decisions of a router (None: of any)."""
    numbers = history.partitions()
    if router_id is None or numbers != list(range(len(numbers))):
        return numbers
    return [(murmur2(router_id.encode()) & 0x7FFFFFFF) % len(numbers)]


def routers_of(history: History) -> list[str]:
    """Return the routers that a history declares."""
    keys = {record.key for partition in history.partitions() for record in history.read("routers", partition)}
    return sorted(key.decode(errors="replace") for key in keys if key is not None)


def refused_offsets(history: History) -> dict[tuple[str, int], set[int]]:
    """Return the offsets of the source events that were refused, by short topic name and partition."""
    refused: dict[tuple[str, int], set[int]] = {}
    for partition in history.partitions():
        for record in history.read("dlq", partition):
            topic = record.headers.get(SOURCE_TOPIC, "").rpartition(".")[2]
            if topic in SOURCES:
                place = topic, int(record.headers.get(SOURCE_PARTITION, "-1"))
                refused.setdefault(place, set()).add(int(record.headers.get(SOURCE_OFFSET, "-1")))
    return refused


class JsonlHistory:
    """A folder with a file `TOPIC-PARTITION.jsonl` per topic and partition, as `write_jsonl` writes them.

    A line is `{"offset", "timestamp", "key", "value"}`, with `headers` where there are some. `value` is the event itself; one that
    is no JSON stands as `{"base64": …}`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not any(folder.glob("requests-*.jsonl")):
            raise FileNotFoundError(2, "no requests-PARTITION.jsonl in this folder", str(folder))

    def partitions(self) -> list[int]:
        """Return the partitions that have a file of requests."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self._folder.glob("requests-*.jsonl"))

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records; none where there is no file."""
        path = self._folder / f"{topic}-{partition}.jsonl"
        if not path.exists():
            return
        keys: dict[str | None, bytes | None] = {None: None}
        load, make = orjson.loads, Record._make
        with path.open("rb", buffering=2**18) as lines:
            for line in lines:
                if line == b"\n":
                    continue
                body = load(line)
                value, key = body["value"], body.get("key")
                if key not in keys:
                    keys[key] = key.encode()
                if type(value) is dict and len(value) == 1 and "base64" in value:
                    value = base64.b64decode(value["base64"])
                yield make((body["offset"], body["timestamp"], keys[key], value, body.get("headers", NO_HEADERS)))


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
        body["value"] = orjson.Fragment(_checked(record.value)) if isinstance(record.value, bytes) else record.value
    except orjson.JSONDecodeError:
        body["value"] = {"base64": base64.b64encode(record.value or b"").decode()}
    if record.headers:
        body["headers"] = dict(record.headers)
    return orjson.dumps(body) + b"\n"


def _checked(value: bytes) -> bytes:
    """Return JSON as it stands on one line. Raises orjson.JSONDecodeError."""
    loaded = orjson.loads(value)
    return orjson.dumps(loaded) if b"\n" in value or _is_opaque(loaded) else value
