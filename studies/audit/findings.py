"""Collect the results of an audit: violations, unprovable promises, and how much was checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from ground.json_values import Document

EXAMPLES = 20
"""Most violations of a kind that are listed; the others are counted."""


class Kind(StrEnum):
    """Codes of broken promises; codes are never removed."""

    UNANSWERED = "request_unanswered"
    ANSWERED_TWICE = "request_answered_twice"
    UNASKED = "decision_without_request"
    CONTRADICTION = "decision_contradicts_itself"
    SEQ_GAP = "seq_gap"
    UNEXPLAINED = "decision_unexplained"
    NOT_IN_STATE = "decision_not_in_state"
    NOT_PUBLISHED = "decision_not_published"
    MALFORMED = "malformed_output"
    LETTER_MISSING = "dead_letter_missing"
    LETTER_ALTERED = "dead_letter_altered"
    LETTER_UNFOUNDED = "dead_letter_without_source"
    REFUSAL_MISSING = "refusal_missing"
    REFUSAL_UNFOUNDED = "refusal_without_dead_letter"
    STRAY_LOST = "stray_lost"
    BILL = "bill_differs"
    SPEND = "spend_differs"
    COMMITTED = "committed_differs"
    UNMATCHED = "unmatched_differs"
    PERIOD = "period_differs"
    POOL = "pool_differs"
    REWARD = "reward_differs"
    COUNTER = "counter_differs"
    DECLARATION = "declaration_differs"
    DECIDED_OTHERWISE = "decision_not_reproduced"
    LEARNED = "learned_differs"
    LAMBDA = "lambda_differs"
    PUBLISHED = "published_state_differs"
    CORRUPT = "state_corrupt"
    UNSERVED = "no_worker_answers"
    CHAIN = "chain_differs"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, or one thing that could not be proved."""

    kind: str
    where: str
    what: str


@dataclass(slots=True)
class Findings:
    """The outcome of an audit.

    Attributes:
        checked: numbers of records of each topic, and of decisions, bills, rewards and routers that
            were checked.
        violations, notes: numbers of violations and of unprovable promises by kind; `examples`
            holds the first of each.
    """

    checked: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Tell whether no promise was found broken."""
        return not self.violations

    def violation(self, kind: Kind, where: str, what: str) -> None:
        """Note a broken promise."""
        self._add(self.violations, kind.value, where, what)

    def unprovable(self, kind: str, where: str, what: str) -> None:
        """Note a promise that can't be proved, as the topics lack records that it needs."""
        self._add(self.notes, kind, where, what)

    def as_json(self) -> Document:
        """Return everything as plain values."""
        return {
            "clean": self.clean,
            "checked": dict(self.checked),
            "violations": dict(self.violations),
            "unprovable": dict(self.notes),
            "examples": [asdict(example) for example in self.examples],
        }

    def _add(self, counts: Counter[str], kind: str, where: str, what: str) -> None:
        counts[kind] += 1
        if counts[kind] <= EXAMPLES:
            self.examples.append(Finding(kind, where, what))
