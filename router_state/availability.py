"""Availability: which models answer at all, by the outcomes that bills report.

A model that fails five times in a row is down. It gets single trials then, further and further
apart, and is back with the first answer to one of them. A model that limits the rate of its calls
gets as many as it answers. The clock is that of decisions, so a replay finds the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field

from router_state.changes import Alert, Journal
from router_state.kernel import exp_of
from router_state.state.framing import Json

PIECE = "\x1favailability"
"""Name of the piece that holds it; there is none while all models answer."""
FAILED = frozenset({"error", "timeout"})
"""Statuses of a model that did not answer."""
UNANSWERED = FAILED | {"rate_limited", "cancelled"}
"""Statuses of calls whose bill says nothing of what an answer costs."""
IN_A_ROW = 5
"""Failures in a row, by their coming or by their calls, after which a model is down: of one that
fails one call in five, one run of calls in 3,000."""
FIRST_WAIT, WAIT_GROWS, MOST_WAIT = 2.0, 3.0, 15.0
"""Seconds to the first trial, factor from one to the next, and the most seconds between two: half
of the 30 s within which a model shall have its share again (benchmarks.outages)."""
TRIAL_SHARE = 150
"""Decisions between two trials, so that less than one request in a hundred is lost to them."""
SLOW_WAIT = 60.0
"""Seconds after which a trial is due however few decisions there were."""
LONGEST_REST = 300.0
"""Most seconds that a model is left alone at its own word (`retry_after_seconds`)."""
MEASURED = 5
"""Refusals after which the rate that a model answers is known well enough to be kept to."""
CUT, GROWTH = 0.93, 300.0
"""Factor of the rate at a refusal, and the seconds in which it grows by e where there is none:
about three refusals a minute (benchmarks.outages)."""
LIFTED, RUSH = 30.0, 5.0
"""Seconds without a refusal after which the limit is gone, it seems; then those in which the rate
grows by e."""
OF_LATE = 10.0
"""Seconds over which the pace is taken."""
LEAST_RATE, BURST = 1.0 / 60.0, 1.0
"""Least calls a second, and seconds of calls that may come at once."""
FORGOTTEN = 1800.0
"""Seconds without a refusal after which a limit is forgotten."""
Excluded = list[str | None]


@dataclass(slots=True)
class Health:
    """One model that has failed, or limits its calls.

    Attributes:
        streak: failures since the last answer.
        calls: calls since it is watched, each with its number; failed: numbers of the latest ones
            that failed; heard: whether one of them was answered.
        after: outcomes of decisions up to this one say nothing any more.
        down_since: seconds since the epoch, or None: it answers.
        wait: seconds from the last trial to the next; trial_at: when that one is due; trial_seq:
            the decision at the last one.
        rate: calls a second that it answers; 0: it has not limited them, or too little is known.
        left: calls that it may get at once, at time `at`.
        answered, refused: calls since `since`, while the rate is measured.
        pace: calls a second that it has answered of late, at time `paced_at`.
        limited_at: when it last refused a call.
    """

    streak: int = 0
    after: int = 0
    down_since: float | None = None
    wait: float = FIRST_WAIT
    trial_at: float = 0.0
    trial_seq: int = 0
    rate: float = 0.0
    left: float = 1.0
    at: float = 0.0
    answered: int = 0
    refused: int = 0
    since: float = 0.0
    pace: float = 0.0
    paced_at: float = 0.0
    limited_at: float | None = None
    calls: int = 0
    failed: list[int] = field(default_factory=list)
    heard: bool = False

    @property
    def sound(self) -> bool:
        """Tell whether there is nothing to be remembered of it."""
        fails = self.down_since is not None or self.streak or self.failed
        return self.heard and not fails and self.limited_at is None

    @property
    def all_failed(self) -> bool:
        """Tell whether as many calls as take a model down have failed, one after the other: answers
        that come in between are of calls from before.
        """
        failed = self.failed
        return any(
            last - first == IN_A_ROW - 1
            for first, last in zip(failed, failed[IN_A_ROW - 1 :], strict=False)
        )

    def rests(self, now: float, seq: int) -> bool:
        """Tell whether a model that is down is not to be tried at the decision after `seq`."""
        if now < self.trial_at:
            return True
        last = self.trial_at - self.wait
        return seq - self.trial_seq < TRIAL_SHARE and now < last + SLOW_WAIT

    def tried(self, now: float, seq: int) -> None:
        """Note that a call goes to it while it is down."""
        self.wait = min(self.wait * WAIT_GROWS, MOST_WAIT)
        self.trial_at, self.trial_seq = max(self.trial_at, now + self.wait), seq

    def allowed(self, now: float) -> float:
        """Return how many calls a model that limits them may get at once."""
        gone = max(now - self.at, 0.0)
        return min(self.left + gone * self.rate, max(1.0, self.rate * BURST))

    def limit(self, now: float, seq: int) -> None:
        """Note a refused call; keep to the rate that was answered once that is known."""
        if self.limited_at is None:
            self.since, self.answered, self.refused = now, 0, 0
        self.limited_at = now
        self.refused += 1
        if self.rate > 0.0:
            self.follow(now, 0.0)
            # It may have grown far beyond what was asked for.
            self.rate = max(min(self.rate * CUT, self.pace), LEAST_RATE)
        elif self.refused >= MEASURED:
            seconds = max(now - self.since, BURST)
            self.rate = max(self.answered / seconds, LEAST_RATE)
            self.pace, self.paced_at = self.rate, now
        else:
            return
        # Calls under way were decided at the rate before.
        self.after, self.left, self.at = seq, 0.0, now

    def follow(self, now: float, calls: float) -> None:
        """Take answered calls into the pace."""
        gone = max(now - self.paced_at, 0.0)
        self.pace = self.pace * exp_of(-gone / OF_LATE) + calls / OF_LATE
        self.paced_at = max(now, self.paced_at)

    def grow(self, now: float) -> None:
        """Let the rate grow by the time since it was last used."""
        if self.rate > 0.0 and now > self.at:
            self.left = self.allowed(now)
            lifted = self.limited_at is not None and now - self.limited_at > LIFTED
            self.rate *= exp_of(min((now - self.at) / (RUSH if lifted else GROWTH), 1.0))
            self.at = now


class Availability:
    """The models of a router that fail or limit their calls; all others answer.

    Attributes:
        models: by name.
        all_down: whether all models of the portfolio were down at once, and none has come back.
    """

    __slots__ = ("_journal", "all_down", "models")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.models: dict[str, Health] = {}
        self.all_down = False

    def rule_out(
        self, names: Sequence[str], excluded: Excluded, *, now: float, seq: int
    ) -> Excluded:
        """Rule out models that are down or have had all calls that they answer, where any other is
        left; an alert tells once that none is."""
        models = self.models
        why = {
            name: reason
            for name in names
            if name in models and (reason := _reason(models[name], now=now, seq=seq)) is not None
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
            decided: the call's decision; seq: the router's last one; nth: the call's number.
            retry_after: seconds for which the model wants to be left alone.
        """
        status = status or "ok"
        health = self.models.get(model)
        if status == "cancelled" or (health is None and status not in UNANSWERED):
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
            # What is under way was decided while it was down.
            health.after, health.failed = seq, []
            health.trial_at, self.all_down = now, False
            self._raise("model_back", model, now - since, since=since, now=now)

    def _raise(
        self, kind: str, model: str | None, size: float, *, since: float, now: float
    ) -> None:
        down = sorted(name for name, one in self.models.items() if one.down_since is not None)
        self._journal.alerts.append(
            Alert(
                kind,
                "up" if kind == "model_back" else "down",
                float(size),
                since=since,
                observed_at=now,
                evidence={"down": down},
                model=model,
            )
        )

    def keep(self, names: Collection[str]) -> None:
        """Forget models that are not among these."""
        gone = [name for name in self.models if name not in names]
        for name in gone:
            del self.models[name]
        if gone:
            self._journal.pieces.add(PIECE)

    def values(self) -> Json | None:
        """Return what is kept of it; None: nothing."""
        if not self.models and not self.all_down:
            return None
        models = {name: asdict(health) for name, health in self.models.items()}
        return {"models": models, "all_down": self.all_down}

    def restore(self, values: Json) -> None:
        """Invert `values`. Raises TypeError, LookupError."""
        self.models = {name: Health(**health) for name, health in values["models"].items()}
        self.all_down = bool(values["all_down"])

    def faults(self) -> Iterable[str]:
        """Name what it can't be."""
        for name, health in self.models.items():
            numbers = [value for value in asdict(health).values() if isinstance(value, int | float)]
            if (
                not all(map(math.isfinite, numbers))
                or min(health.wait, health.rate, health.left) < 0
            ):
                yield f"availability of {name}"


def _reason(health: Health, *, now: float, seq: int) -> str | None:
    """Return why a model is not to be called now, or None."""
    if health.down_since is not None:
        return "down" if health.rests(now, seq) else None
    # A model that asked to be left alone for a while.
    if now < health.trial_at:
        return "down" if health.limited_at is None else "rate_limited"
    if health.rate > 0.0 and health.allowed(now) < 1.0:
        return "rate_limited"
    return None
