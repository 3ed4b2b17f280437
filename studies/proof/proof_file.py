"""The file of a proof: the figures, and what an auditor needs to repeat them.

It names each topic's records that were read, with a digest of their keys and values. Whoever
repeats it reads these records alone; what came later changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from ground.json_values import Document
from studies.history.records import History, Record, framed

FORMAT = 1
"""Version of the file's form."""
TOLERANCE = 1e-9
"""Largest relative difference of a figure on another machine, whose logarithms may differ."""
COMPACTED = frozenset({"routers"})
"""Topics that Kafka compacts: a record that is gone since is not a difference."""


class Noted:
    """A history that notes which records of it are read.

    Attributes:
        places: of each topic and partition the first offset and the one after the last, the number
            of records and their digest.
    """

    def __init__(self, history: History, until: dict[str, Document] | None = None) -> None:
        self._history, self._until = history, until
        self.places: dict[str, Document] = {}

    def partitions(self, topic: str = "requests") -> list[int]:
        """See History."""
        return self._history.partitions(topic)

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """See History; nothing after the noted bounds is read."""
        place = f"{topic}-{partition}"
        bound = None if self._until is None else self._until.get(place, {"next": 0})["next"]
        digest, n, first, after = sha256(), 0, -1, 0
        for record in self._history.read(topic, partition):
            if bound is not None and record.offset >= bound:
                break
            first = record.offset if first < 0 else first
            n, after = n + 1, record.offset + 1
            offset = str(record.offset).encode()
            digest.update(framed(offset, record.key or b"", record.value or b""))
            yield record
        self.places[place] = {
            "first": first,
            "next": after,
            "records": n,
            "sha256": digest.hexdigest(),
        }


def filled(
    router_id: str, prefix: str, figures: Document, sentence: str, places: dict[str, Document]
) -> Document:
    """Return the document of a proof."""
    return {
        "format": FORMAT,
        "made_by": f"paretobandit-streams {version('paretobandit-streams')}",
        "router_id": router_id,
        "prefix": prefix,
        "says": sentence,
        "figures": figures,
        "read": dict(sorted(places.items())),
    }


def differences(before: Document, again: Document) -> list[str]:
    """Return what differs between a proof and its repetition: records, then figures."""
    found = []
    for place, was in before["read"].items():
        now = again["read"].get(place)
        if now != was and place.rpartition("-")[0] not in COMPACTED:
            found.append(f"{place}: {_moved(was, now)}")
    return found + list(_figures("", before["figures"], again["figures"]))


def _moved(was: Document, now: Document | None) -> str:
    if now is None or now["first"] > was["first"] or now["records"] < was["records"]:
        return "records are gone"
    return "records are others than they were"


def _figures(path: str, was: Any, now: Any) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in {**was, **now}:
            yield from _figures(f"{path}.{name}".lstrip("."), was.get(name), now.get(name))
    elif isinstance(was, float) and isinstance(now, float):
        if not math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=1e-12):
            yield f"{path}: {was!r} became {now!r}"
    elif was != now:
        yield f"{path}: {was!r} became {now!r}"
