"""The times of a router's calls: their expectations, the price of a wait, and the debt towards the
target.

The target is met as a budget is. A decision charges the expected time of its call; an answer
charges the difference to the time taken (`debt`). The price of a wait is solved over the pacer's
window given the price of a dollar, and the price of a dollar given that of a wait. Each solution
is exact, and the two alternate every eight decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix, Vector
from router_state.kernel import (
    RIDGE_FLOOR,
    WAIT_PRICES,
    Debt,
    Regression,
    SharedPrior,
    estimate,
    waits,
)
from router_state.latency.expected_waits import Waits
from router_state.latency.goal import MOST_CHARGED, LatencyGoal
from router_state.latency.speed import FIRST_TRIAL, Speed
from router_state.latency.speed import PIECE as SPEED
from router_state.learning.guess import LATENCIES

Singles = npt.NDArray[np.float32]
PIECE = "\x1flatency"
"""Name of the piece with target and debt, which exists only with a target."""
PRIOR = f"{PIECE}:"
"""Name of the piece with the shared prior of times."""
UNHEARD = 150
"""Number of answers in a row without a time that raises an alert."""
ENOUGH_CALLS = 20.0
"""Number of calls that must have reported their times before times have an effect. After a change
of the target all earlier calls count for this many.
"""
MEASURED_CALLS = 1000.0
"""Effective number of calls behind the measured mean."""


class Timing:
    """The times of calls and the dual of seconds, see the module.

    Attributes:
        goal: the target as declared.
        prior: shared prior of all models' times; speeds: times of each model, by name.
        debt: time that calls have taken beyond the target, in the target's unit.
        per_unit: price of a wait, in reward per unit of the target; target: target that this price
            was last solved for.
        tried: seq of the last decision that gave a model a trial.
        count: calls that have reported their time; mean_seconds, over: recent mean of these times,
            and recent share of calls that took longer than allowed; unheard: answers in a row
            without a time.
        short: solutions in a row that missed the target; alerted: whether an alert was raised for a
            missed target or for missing times.
        expected: expected time of a call at the prices in force.
    """

    __slots__ = (
        "alerted",
        "count",
        "debt",
        "expected",
        "goal",
        "journal",
        "mean_seconds",
        "over",
        "per_unit",
        "prior",
        "short",
        "speeds",
        "target",
        "tried",
        "unheard",
    )

    def __init__(self, goal: LatencyGoal, d: int, journal: Journal) -> None:
        self.goal, self.journal = goal, journal
        self.prior = SharedPrior(PRIOR, d, LATENCIES, journal)
        self.speeds: dict[str, Speed] = {}
        self.count, self.mean_seconds, self.over = 0.0, 0.0, 0.0
        self.start_over()

    def start_over(self) -> None:
        """Reset the debt; learned times stay."""
        self.debt, self.per_unit, self.target, self.expected = Debt(), 0.0, 0.0, 0.0
        self.tried = self.unheard = self.short = 0
        self.alerted = False
        for speed in self.speeds.values():
            speed.heard = speed.trials = 0
        self.journal.pieces.update(self.pieces)

    @property
    def in_use(self) -> bool:
        """Tell whether enough calls have reported their times."""
        return self.count >= ENOUGH_CALLS

    @property
    def regressions(self) -> list[Regression]:
        """Return the regressions of all models."""
        return [speed.costs.regression for speed in self.speeds.values()]

    @property
    def pieces(self) -> list[str]:
        """Return the names of the pieces that hold the times."""
        return [PIECE, PRIOR, *(f"{SPEED}{name}" for name in self.speeds)]

    def changed(self) -> None:
        """Note that target or debt have changed."""
        self.journal.pieces.add(PIECE)

    def declare(self, goal: LatencyGoal) -> None:
        """Put another target in force that times the same part of an answer."""
        self.goal, self.over = goal, 0.0
        self.count = min(self.count, ENOUGH_CALLS)
        self.start_over()

    def keep(self, names: Sequence[str]) -> None:
        """Keep the times of these models, and forget all others."""
        for name in [name for name in self.speeds if name not in names]:
            del self.speeds[name]
            self.journal.pieces.add(f"{SPEED}{name}")
        for name in names:
            if name not in self.speeds:
                self.speeds[name] = Speed(name, self.prior, self.journal)
                self.journal.pieces.update((PRIOR, PIECE))
        # The order is that of the arms, not that in which models came.
        self.speeds = {name: self.speeds[name] for name in names}

    def estimate_again(self) -> None:
        """Estimate the shared prior."""
        estimate(self.prior, self.regressions)

    def look(self, choice: Choice) -> Waits | None:
        """Return the expected waits of a request (None: none is known), and set their cost, by the
        request's own price of a wait.

        Now and then a model without recent times counts as answering at once: so a model that has
        become fast is found.
        """
        if not self.in_use:
            return None
        if self.prior.due:
            self.estimate_again()
        units, seconds = self.waits(choice.request.x.astype(np.float32)[None, :], 1)
        found: list[float] = units[0].tolist()
        charged = [min(wait, MOST_CHARGED * self._unit) for wait in found]
        if self.per_unit > 0.0:
            self._try(charged, choice.excluded, choice.seq)
        per_unit = self.per_unit * WAIT_PRICES.item(choice.slot)
        choice.beside = [per_unit * wait for wait in charged]
        return Waits(found, seconds[0].tolist(), self.goal.p95_seconds is not None)

    def _try(self, charged: list[float], excluded: Sequence[str | None], seq: int) -> None:
        """Give a trial to the model whose trial has been due longest, if any is due: the model's
        wait is not charged.
        """
        speeds = list(self.speeds.values())
        due = {
            k: late
            for k, (speed, why) in enumerate(zip(speeds, excluded, strict=True))
            if why is None and (late := seq - speed.heard - speed.rest) >= 0
        }
        if due and seq - self.tried >= FIRST_TRIAL:
            k = max(due, key=due.__getitem__)
            self.tried = seq
            speeds[k].try_at(seq)
            self.journal.pieces.add(speeds[k].costs.regression.piece)
            self.changed()
            charged[k] = 0.0

    @property
    def _unit(self) -> float:
        return self.goal.most or 1.0

    def waits(self, contexts: Singles, n: int, limit: float | None = None) -> tuple[Matrix, Matrix]:
        """Return the expected times of calls for n contexts, in the unit of the target and in
        seconds, each of shape (n, K); `limit` replaces the target's limit of time.
        """
        speeds = list(self.speeds.values())
        limit = limit or self.goal.p95_seconds
        seconds, slow = waits(
            contexts,
            n,
            self.prior.d,
            [speed.costs for speed in speeds],
            variances=np.array([speed.spread for speed in speeds]),
            limit=limit or 1.0,
        )
        shape = n, len(speeds)
        return (seconds if limit is None else slow).reshape(shape), seconds.reshape(shape)

    def costs(self, contexts: Singles, n: int) -> Matrix:
        """Return the cost of waits for n contexts at the common price, in reward, shape (n, K)."""
        waits, _ = self.waits(contexts, n)
        return self.per_unit * np.minimum(waits, MOST_CHARGED * self._unit)

    def learn(
        self, model: str, seconds: float, x: Vector | None, *, seq: int, now: float, at_least: bool
    ) -> None:
        """Learn the seconds of a call; `at_least`: the call was broken off after these seconds."""
        speed = self.speeds.get(model)
        if speed is None:
            return
        if at_least and not self._is_long(speed, seconds, x):
            return
        alert = speed.learn(seconds, x, seq=seq, now=now)
        if alert is not None:
            self.journal.jumped = True
            self.journal.alerts.append(alert)
        regression = speed.costs.regression
        if self.prior.overdue or regression.decay < RIDGE_FLOOR:
            self.estimate_again()

    def _is_long(self, speed: Speed, seconds: float, x: Vector | None) -> bool:
        """Tell whether a call that timed out had taken longer than expected. A shorter one tells
        nothing.
        """
        costs = speed.costs
        usual = costs.ratio if x is None else costs.expected(costs.regression.predict(x), 0.0)
        return seconds > usual

    def measure(self, seconds: float) -> None:
        """Add a call's time to the measured mean."""
        self.count += 1.0
        late, n = self.goal.p95_seconds, min(self.count, MEASURED_CALLS)
        self.mean_seconds += (seconds - self.mean_seconds) / n
        if late is not None:
            self.over += (float(seconds > late) - self.over) / n
        self.unheard, self.alerted = 0, False
        self.changed()

    def miss(self, *, now: float) -> None:
        """Note an answer without a time; raise an alert when too many come in a row."""
        self.unheard += 1
        self.changed()
        if self.unheard != UNHEARD or self.alerted:
            return
        self.alerted = True
        evidence = {"of": self.goal.of, "answers": self.unheard, "known": int(self.count)}
        self.journal.alert("latency_unknown", float(self.unheard), evidence, now=now)
