"""The capability of budgets of a run: dollars that all calls of an agent's session may cost
together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.drawers import Drawers
from router_state.packing.framing import Json
from router_state.record import RequestRecord
from router_state.runs.run_budget import WARNED_AT, Run, RunBudget, within

PIECE = "\x1fruns"
"""Prefix of the names of pieces that hold runs."""


class BudgetOnWire(Protocol):
    """Budgets of runs as they are declared."""

    budget_usd: float | None
    when_spent: str | None


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def sessions(self) -> BudgetOnWire | None: ...


class RequestOnWire(Protocol):
    """A request, which may name the budget of its session."""

    @property
    def session_budget_usd(self) -> float | None: ...


class Runs(Capability):
    """The runs of a router. Requests of any router may name the budget of their session.

    A run is remembered from its first request on if the router declares budgets, else from the
    first request that names one.

    Attributes:
        declared: the router's declaration.
        known: the remembered runs, by session.
    """

    __slots__ = ("declared", "known")
    name = "runs"
    declaration = RunBudget
    undeclared = True

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared, self.known = RunBudget(), Drawers(Run, PIECE, journal)

    @classmethod
    def read(cls, wire: OnWire) -> RunBudget | None:
        """See Capability."""
        sessions = wire.sessions
        if sessions is None:
            return None
        return RunBudget(sessions.budget_usd, sessions.when_spent == "refuse")

    @classmethod
    def document(cls, declared: RunBudget) -> dict[str, object]:
        """See Capability."""
        found: dict[str, object] = {"when_spent": "refuse" if declared.refuses else "cheapest"}
        if declared.budget_usd is not None:
            found["budget_usd"] = declared.budget_usd
        return {"sessions": found}

    def declare(self, declared: RunBudget | None, *, now: float) -> None:
        """See Capability."""
        self.declared = declared or RunBudget()

    @classmethod
    def request_field(cls, wire: RequestOnWire) -> float | None:
        """See Capability: returns the budget of the request's session."""
        return wire.session_budget_usd

    def afford(self, choice: Choice) -> None:
        """See Capability."""
        name = choice.request.session_id
        run = None if name is None else self.known.find(name)
        budget = self._budget(run, choice)
        if name is not None and budget is not None:
            left = budget - (0.0 if run is None else run.charged_usd)
            costs, refuses = choice.seen.expected_cost_usd, self.declared.refuses
            choice.cap(*within(left, choice.excluded, costs, refuses=refuses))
            choice.spare(left)

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        name = choice.request.session_id
        run = None if name is None else self.known.find(name)
        budget = self._budget(run, choice)
        if name is None or (run is None and budget is None):
            return
        run = run or Run(record.decided_at, record.seq)
        said = choice.request.field_of(self.name)
        if said is not None and said != run.budget_usd:
            run.budget_usd, run.warned = said, False
        run.at = record.decided_at
        run.charged_usd += record.expected_cost_usd
        self.known.use(name, run)
        if budget is not None:
            record.keep(self.name, budget - run.charged_usd)
            self._warn(name, run, now=record.decided_at)

    @classmethod
    def route_fields(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        return {"session_left_usd": kept}

    def billed(self, billing: Billing) -> None:
        """See Capability. If the run is remembered, the bill replaces the expected cost that the
        run was charged.
        """
        self._charge(billing.record, billing.difference_usd, now=billing.now)

    def moved(self, record: RequestRecord, usd: float) -> None:
        """See Capability."""
        self._charge(record, usd, now=record.decided_at)

    def _charge(self, record: RequestRecord, usd: float, *, now: float) -> None:
        name = None if record.call is None else record.call.session_id
        run = None if name is None else self.known.find(name)
        # The session may have been forgotten and have begun anew under the same name.
        if name is not None and run is not None and record.seq >= run.born:
            run.charged_usd += usd
            self.known.changed(name)
            self._warn(name, run, now=now)

    def _budget(self, run: Run | None, choice: Choice | None = None) -> float | None:
        """Return the budget of a run: that of this request, or of an earlier one, or of the
        router.
        """
        said = None if choice is None else choice.request.field_of(self.name)
        if said is None and run is not None:
            said = run.budget_usd
        return self.declared.budget_usd if said is None else said

    def _warn(self, name: str, run: Run, *, now: float) -> None:
        """Raise one alert when most of a run's budget is charged."""
        budget = self._budget(run)
        if budget is None or run.warned or run.charged_usd < WARNED_AT * budget:
            return
        run.warned = True
        evidence = {
            "session_id": name,
            "budget_usd": budget,
            "charged_usd": run.charged_usd,
            "when_spent": "refuse" if self.declared.refuses else "cheapest",
        }
        self.journal.alert("session_budget", run.charged_usd / budget, evidence, now=now)

    def start_over(self) -> None:
        """See Capability."""
        self.known.clear()

    @classmethod
    def head(cls, one: Runs | None) -> dict[str, Json]:
        """See Capability."""
        return {} if one is None or not one.known.pieces else {"runs": len(one.known)}

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return self.known.pieces

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        return self.known.pack(piece)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if head.get("runs"):
            self.known.restore(piece)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not self.known.are_sound():
            yield "drawers of runs"
        for run in self.known:
            budget = 1.0 if run.budget_usd is None else run.budget_usd
            if run.born < 1 or not (math.isfinite(run.charged_usd) and 0.0 < budget < math.inf):
                yield "runs"
