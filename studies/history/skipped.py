"""Count the records of a history that could not be used, by reason, with the first place of
each."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Skipped:
    """Counts of skipped records by reason, and the first place of each."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def skip(self, reason: str, where: str, count: int = 1) -> None:
        """Count records that are skipped or missing."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        # The first one only: a history may leave out millions for one reason.
        self.first.setdefault(reason, where)

    def lines(self) -> list[str]:
        """Return one sentence per reason, the most frequent first."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return [f"{count:,} × {reason} (first: {self.first[reason]})" for reason, count in ordered]
