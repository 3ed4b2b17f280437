"""Look up one decision, or a router's last ones, on the topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiokafka.errors import KafkaError

from doors.console.bus import Bus, open_bus
from doors.console.explained_decision import SHORT, because_of, why_excluded
from doors.console.failures import Failure
from doors.console.found_records import TOPICS, Found, find
from doors.gateway.problems import Problem
from ground.json_values import Document
from schemas import Candidate, MalformedEvent, RouteDecided, decode
from streams.settings import Settings
from watching.joined import Request

SEARCHES = 2
"""Most searches at a time; further ones wait."""
LAST = 25
"""Decisions that the page of a router lists."""
AT_ONCE = 200
"""Decisions that are looked at before other work has its turn."""
TERMS = {
    "mean": "a lower expected reward",
    "bonus": "less exploration",
    "penalty": "the penalty for its cost",
}
"""Phrases for the terms by which a candidate lost."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The decisions that a list shows; None: whichever.

    Attributes:
        cost_from, cost_to: dollars of the bill, or of what was expected where none has come.
        label_from, label_to: of the label; a decision without one is left out.
        until: latest time of the decision, in seconds since the epoch.
    """

    model: str | None = None
    reason: str | None = None
    cost_from: float | None = None
    cost_to: float | None = None
    label_from: float | None = None
    label_to: float | None = None
    until: float | None = None

    def holds(self, line: Document) -> bool:
        """Tell whether a decision, as a line of the list, is one of these."""
        cost = line["expected_cost_usd"] if line["cost_usd"] is None else line["cost_usd"]
        return (
            self.model in (None, line["model"])
            and self.reason in (None, line["kind"])
            and (self.until is None or line["at"] <= self.until)
            and _between(cost, self.cost_from, self.cost_to)
            and _between(line["label"], self.label_from, self.label_to)
        )


def _between(value: float | None, least: float | None, most: float | None) -> bool:
    if least is None and most is None:
        return True
    return (
        value is not None and (least is None or least <= value) and (most is None or value <= most)
    )


class Decisions:
    """Look decisions up; at most `gateway_search` records of a partition are read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._searches = asyncio.Semaphore(SEARCHES)

    async def explain(self, router_id: str, request_id: str) -> dict[str, object]:
        """Return everything that is known of a request. Raises Problem."""
        async with self._bus(*TOPICS) as bus:
            found = await find(bus, router_id, request_id, limit=self._settings.gateway_search)
        if found.decision is None and not found.letters:
            raise Problem(
                "not_found",
                "no decision and no refusal of this request among the last "
                f"{self._settings.gateway_search:,} records of each partition",
            )
        return _shown(found, self._settings.dashboard_trace_url)

    async def last(
        self, router_id: str, wanted: Wanted, of: Callable[[str], Request | None]
    ) -> Document:
        """Return the last decisions of a router that a visitor wants, the newest first, and the
        number of decisions that were searched. Raises Problem.

        Args:
            of: finds a request's bill and label, as far as they are known.
        """
        decisions: list[Document] = []
        read = 0
        async with self._bus("routes") as bus:
            limit = self._settings.gateway_search
            async for record in bus.backwards("routes", router_id, limit=limit):
                if record.key != router_id.encode():
                    continue
                decision = _decision(record.value)
                if decision is None or decision.repeat:
                    continue
                read += 1
                if read % AT_ONCE == 0:
                    await asyncio.sleep(0)  # a rare filter reads for long, and pages want updates
                line = _line(decision, of(decision.request_id))
                if wanted.holds(line):
                    decisions.append(line)
                if len(decisions) == LAST:
                    break
        return {"decisions": decisions, "read": read, "reasons": SHORT}

    @asynccontextmanager
    async def _bus(self, *names: str) -> AsyncIterator[Bus]:
        try:
            async with self._searches, open_bus(self._settings, *names) as bus:
                yield bus
        except Failure as error:
            raise Problem("undelivered", error.message) from error
        except KafkaError as error:
            raise Problem("undelivered", str(error)) from error


def _decision(value: bytes | None) -> RouteDecided | None:
    try:
        return decode(RouteDecided, value)
    except MalformedEvent:
        return None


def _line(decision: RouteDecided, known: Request | None) -> Document:
    return {
        "request_id": decision.request_id,
        "at": decision.decided_at.timestamp(),
        "model": decision.model,
        "kind": decision.reason.value,
        "reason": SHORT.get(decision.reason.value, decision.reason.value),
        "expected_reward": decision.expected_reward,
        "expected_cost_usd": decision.expected_cost_usd,
        "cost_usd": known and known.bill,
        "label": known and known.label,
    }


def _shown(found: Found, url: str | None) -> dict[str, object]:
    decision = found.decision
    return {
        "decision": decision and decision.model_dump(mode="json", exclude={"candidates"}),
        "because": decision and because_of(decision),
        "candidates": decision and _candidates(decision),
        "costs": [event.model_dump(mode="json") for event in found.costs],
        "rewards": [event.model_dump(mode="json") for event in found.rewards],
        "refusals": [
            {"topic": one.topic, "reason": one.reason, "message": one.message}
            for one in found.letters
        ],
        "trace": found.trace,
        "trace_url": url and found.trace and url.replace("{trace}", found.trace),
    }


def _candidates(decision: RouteDecided) -> list[dict[str, object]]:
    """Return the candidates: the chosen one first, then by score, those without a score last."""
    given = decision.candidates or ()
    chosen = next((one for one in given if one.model == decision.model), None)
    ordered = sorted(
        given, key=lambda one: (one is not chosen, one.excluded is not None, -one.score)
    )
    return [
        one.model_dump(mode="json") | {"lost": None if one is chosen else lost(one, chosen)}
        for one in ordered
    ]


def lost(candidate: Candidate, chosen: Candidate | None) -> str:
    """Return why a candidate was not chosen: its exclusion, else the terms by which it lost
    most.
    """
    if candidate.excluded is not None:
        return why_excluded(candidate.excluded)
    if chosen is None:
        return ""
    behind = chosen.score - candidate.score
    # Onboarding, a probe or a cap decided, not the score.
    if behind < 0.0:
        return f"its score is {-behind:.3f} higher, but the score did not decide"
    # score = mean + bonus − penalty, so the three differences add up to the gap.
    apart = {
        "mean": chosen.mean - candidate.mean,
        "bonus": chosen.bonus - candidate.bonus,
        "penalty": candidate.penalty - chosen.penalty,
    }
    worst = max(apart, key=lambda term: apart[term])
    gained = sum(-value for value in apart.values() if value < 0.0)
    makes_up = f", the rest gives back {gained:.3f}" if gained > 5e-4 else ""
    return f"{behind:.3f} behind: {TERMS[worst]} takes {apart[worst]:.3f}{makes_up}"
