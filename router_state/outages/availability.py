"""Track which models answer, by the outcomes that bills report.

A model that fails five times in a row is down. A model that is down gets single trials at growing
intervals, and is back with the first answered trial. A model that limits the rate of its calls
gets the rate that it answers. Time is that of decisions, so a replay decides the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields

from msgspec import Struct

from router_state.changes import Journal
from router_state.events import FAILED, UNANSWERED
from router_state.outages.health import FIRST_WAIT, IN_A_ROW, Health
from router_state.packing.framing import Json, decoded

PIECE = "\x1favailability"
"""Name of the piece of state, which exists while some model does not answer."""
LONGEST_REST = 300.0
"""Most seconds for which a model's own `retry_after_seconds` is obeyed."""
FORGOTTEN = 1800.0
"""Seconds without a refused call after which a rate limit is forgotten."""
Excluded = list[str | None]


class _Kept(Struct):
    models: dict[str, Health]
    all_down: bool


class Availability:
    """The models of a router that fail or limit their calls; all others answer.

    Attributes:
        models: health of these models, by name.
        all_down: whether all models of the portfolio went down and none has come back.
    """

    __slots__ = ("_journal", "all_down", "models")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.models: dict[str, Health] = {}
        self.all_down = False

    def rule_out(
        self, names: Sequence[str], excluded: Excluded, *, now: float, seq: int
    ) -> Excluded:
        """Rule out models that are down or at their rate limit. If none would be left, rule out
        none and raise one alert.
        """
        models = self.models
        why = {
            name: reason
            for name in names
            if name in models and (reason := models[name].reason(now, seq)) is not None
        }
        if not why:
            return excluded
        if not self.all_down:
            self._look(names, excluded, now=now)
        found = [before or why.get(name) for name, before in zip(names, excluded, strict=True)]
        return found if None in found else excluded

    def _look(self, names: Sequence[str], excluded: Excluded, *, now: float) -> None:
        """Raise an alert where every model that takes traffic is down."""
        since = now
        for name, before in zip(names, excluded, strict=True):
            if before != "retired":
                down_since = self.models[name].down_since if name in self.models else None
                if down_since is None:
                    return
                since = min(since, down_since)
        self.all_down = True
        self._journal.pieces.add(PIECE)
        self._raise("all_models_down", None, len(names), since=since, now=now)

    def called(self, model: str, *, now: float, seq: int) -> int:
        """Note that a decision went to a model; return the call's number, 0 where the model is not
        watched."""
        health = self.models.get(model)
        if health is None:
            return 0
        health.calls += 1
        if health.down_since is not None:
            health.tried(now, seq)
        if health.rate > 0.0:
            health.grow(now)
            health.left = max(health.left - 1.0, 0.0)
        self._journal.pieces.add(PIECE)
        return health.calls

    def observe(
        self,
        model: str,
        status: str | None,
        *,
        decided: int,
        seq: int,
        now: float,
        nth: int = 0,
        retry_after: float | None = None,
    ) -> None:
        """Learn how a call ended; a bill without a status is that of an answer.

        Args:
            decided: seq of the call's decision; seq: seq of the router's last decision; nth: number
                of the call.
            retry_after: seconds for which the model asks for no calls.
        """
        status = status or "ok"
        health = self.models.get(model)
        # A model that is gone is ruled out elsewhere, and not tried again.
        if status in ("cancelled", "gone") or (health is None and status not in UNANSWERED):
            return
        if health is None:
            health = self.models[model] = Health()
        if decided <= health.after:
            return
        self._journal.pieces.add(PIECE)
        if status == "rate_limited":
            health.limit(now, seq)
        elif status in FAILED:
            self._fail(model, health, seq=seq, nth=nth, now=now)
        else:
            self._answer(model, health, seq=seq, nth=nth, now=now)
        if retry_after is not None and status in UNANSWERED:
            rest = now + min(retry_after, LONGEST_REST)
            health.trial_at = max(health.trial_at, rest)
        if health.sound:
            del self.models[model]

    def _fail(self, model: str, health: Health, *, seq: int, nth: int, now: float) -> None:
        health.streak += 1
        if nth:
            health.failed = sorted({*health.failed, nth})[-2 * IN_A_ROW :]
        if health.down_since is None and (health.streak >= IN_A_ROW or health.all_failed):
            health.down_since, health.after = now, seq
            health.wait, health.trial_at, health.trial_seq = FIRST_WAIT, now + FIRST_WAIT, seq
            self._raise("model_down", model, health.streak, since=now, now=now)

    def _answer(self, model: str, health: Health, *, seq: int, nth: int, now: float) -> None:
        if nth:
            health.heard = True
            health.failed = [number for number in health.failed if number > nth - IN_A_ROW]
        health.streak, health.answered = 0, health.answered + 1
        if health.rate > 0.0:
            health.follow(now, 1.0)
        if health.limited_at is not None and now - health.limited_at > FORGOTTEN:
            health.limited_at, health.rate = None, 0.0
        if health.down_since is not None:
            since, health.down_since = health.down_since, None
            # Calls in flight were decided while the model was down.
            health.after, health.failed = seq, []
            health.trial_at, self.all_down = now, False
            self._raise("model_back", model, now - since, since=since, now=now)

    def _raise(
        self, kind: str, model: str | None, size: float, *, since: float, now: float
    ) -> None:
        down = sorted(name for name, one in self.models.items() if one.down_since is not None)
        self._journal.alert(
            kind,
            float(size),
            {"down": down},
            now=now,
            since=since,
            direction="up" if kind == "model_back" else "down",
            model=model,
        )

    def keep(self, names: Collection[str]) -> None:
        """Forget all models but these."""
        gone = [name for name in self.models if name not in names]
        for name in gone:
            del self.models[name]
        if gone:
            self._journal.pieces.add(PIECE)

    def values(self) -> Json | None:
        """Return the state to be stored; None if there is none."""
        return {"models": self.models, "all_down": self.all_down} if self.is_kept else None

    @property
    def is_kept(self) -> bool:
        """Return whether there is a state to be stored."""
        return bool(self.models) or self.all_down

    def restore(self, body: bytes) -> None:
        """Invert `values`, as JSON. Raises DamagedState."""
        kept = decoded(body, _Kept, "availability")
        self.models, self.all_down = kept.models, kept.all_down

    def faults(self) -> Iterator[str]:
        """Yield a description of each part of the state that is impossible."""
        for name, health in self.models.items():
            values = (getattr(health, one.name) for one in fields(health))
            numbers = [value for value in values if isinstance(value, int | float)]
            if (
                not all(map(math.isfinite, numbers))
                or min(health.wait, health.rate, health.left) < 0
            ):
                yield f"availability of {name}"
