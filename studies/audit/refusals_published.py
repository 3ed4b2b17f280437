"""Check that `pb.refusals` has every dead letter with a readable router, and nothing else."""

from __future__ import annotations

import math

import orjson

from schemas.event import MalformedEvent, decode
from schemas.refusals import EventRefused
from schemas.topic_roles import SOURCES
from studies.audit.findings import Findings, Kind
from studies.audit.recovered_state import Evidence
from studies.audit.topic_reading import Progress, Topics

Reasons = dict[tuple[str, int], dict[int, str]]
"""Reasons, by short topic and partition of the refused event, then by offset."""


class RefusalCheck:
    """Compare refusals with dead letters. Dead letters before the first refusal are skipped,
    as refusals are kept for a shorter time.
    """

    def __init__(self, topics: Topics, read: Progress, findings: Findings) -> None:
        self._findings = findings
        self._reasons: Reasons = {}
        self._since = math.inf
        for number in topics.partitions():
            for record in read("refusals", number):
                self._take(record.value, f"refusals-{number} offset {record.offset}")
                self._since = min(self._since, record.timestamp)

    def _take(self, value: bytes | None, where: str) -> None:
        self._findings.checked["refusals"] += 1
        try:
            refusal = decode(EventRefused, value)
        except MalformedEvent as error:
            self._findings.violation(Kind.MALFORMED, where, str(error))
            return
        # Clients may read this topic without the right to read prompts, so it may hold these fields
        # only.
        if orjson.loads(value or b"").keys() - EventRefused.model_fields.keys():
            self._findings.violation(Kind.MALFORMED, where, "holds more than a refusal may")
        self._reasons.setdefault((refusal.topic, refusal.partition), {})[refusal.offset] = (
            refusal.reason
        )

    def run(self, evidence: Evidence) -> None:
        """Check the refused events that a partition's state contains."""
        for topic in SOURCES:
            published = self._reasons.get((topic, evidence.number), {})
            last, letters = evidence.watermarks.get(topic, -1), evidence.letters[topic]
            for offset, letter in letters.items():
                if (
                    letter.named
                    and letter.at >= self._since
                    and offset <= last
                    and offset not in evidence.waiting[topic]
                ):
                    self._compare(
                        f"{topic}-{evidence.number} offset {offset}",
                        letter.reason,
                        published.get(offset),
                    )
            for offset in published.keys() - letters.keys():
                if offset <= last and offset not in evidence.waiting[topic]:
                    where = f"{topic}-{evidence.number} offset {offset}"
                    self._findings.violation(
                        Kind.REFUSAL_UNFOUNDED, where, "clients were told that it has a dead letter"
                    )

    def _compare(self, where: str, reason: str, published: str | None) -> None:
        if published is None:
            self._findings.violation(
                Kind.REFUSAL_MISSING, where, f"dead-lettered ({reason}), and no client was told"
            )
        elif published != reason:
            self._findings.violation(
                Kind.REFUSAL_MISSING,
                where,
                f"dead-lettered as {reason}, and clients were told {published}",
            )
