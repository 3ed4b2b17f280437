"""Measure the traffic of a router's history: requests of a usual week, and the share of each
hour."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ground.files.atomic_file import replacing
from router_state.changes import Journal
from router_state.periods.hourly_traffic import Traffic
from router_state.periods.spending import ExpectedTraffic
from schemas.budgets import PeriodBudget
from studies.history.happened import Declared
from studies.simulate.cases import Case

FILE = "traffic.json"
"""File in the fitted folder that holds the value of a declaration's `traffic`."""
WEEK = 7.0 * 86_400.0
"""Seconds of a week; a shorter history gives no shape."""


class TrafficSeen:
    """Counts a history's decisions by the hours of the week, as a router does, by the clock of its
    first budget."""

    def __init__(self) -> None:
        self._zone = "UTC"
        self._times: list[float] = []

    def through(self, cases: Iterable[Case | Declared]) -> Iterator[Case | Declared]:
        """Yield the cases unchanged, and count them."""
        for case in cases:
            if isinstance(case, Case):
                self._times.append(case.at)
            elif case.router is not None and (given := case.router.budget) is not None:
                first = given if isinstance(given, PeriodBudget) else given[0]
                self._zone = first.timezone
            yield case

    def as_declared(self) -> dict[str, object] | None:
        """Return the week as a declaration's `traffic`; None for less than a week of cases."""
        times = self._times
        if not times or times[-1] - times[0] < WEEK:
            return None
        traffic = Traffic(ExpectedTraffic(), self._zone, Journal())
        for at in times:
            traffic.note(at)
        weeks = (times[-1] - times[0]) / WEEK
        hours = [round(share, 4) for share in traffic.shape.shares]
        return {"per_week": round(len(times) / weeks, 1), "hours": hours}

    def write(self, folder: Path) -> Path | None:
        """Write the counts into a folder and return the file; None for less than a week."""
        declared = self.as_declared()
        if declared is None:
            return None
        path = folder / FILE
        with replacing(path) as part:
            part.write_text(json.dumps(declared) + "\n", encoding="utf-8")
        return path
