"""The health of one model: failures, trials while the model is down, and the rate of calls that it
answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from router_state.kernel import exp_of

IN_A_ROW = 5
"""Number of failures in a row, by arrival or by call, that takes a model down. If one call in five
fails, such a run comes once in 3,000 calls.
"""
FIRST_WAIT, WAIT_GROWS, MOST_WAIT = 2.0, 3.0, 15.0
"""Seconds to the first trial, factor from one interval to the next, and largest interval: half of
the 30 s within which a model must have its share again (benchmarks.outages).
"""
TRIAL_SHARE = 150
"""Decisions between two trials, so that trials lose less than one request in a hundred."""
SLOW_WAIT = 60.0
"""Seconds after which a trial is due, however few decisions were made."""
KNOWN_REFUSALS = 5
"""Number of refused calls after which a model's rate limit is known well enough."""
RATE_CUT, RATE_GROWTH = 0.93, 300.0
"""Factor of the rate at a refused call, and seconds in which the rate grows by a factor of e
without one: about three refusals a minute (benchmarks.outages).
"""
LIFTED, RUSH = 30.0, 5.0
"""Seconds without a refused call after which the limit seems gone, and seconds in which the rate
then grows by a factor of e.
"""
OF_LATE = 10.0
"""Seconds over which the rate of answered calls is measured."""
LEAST_RATE, BURST = 1.0 / 60.0, 1.0
"""Least rate in calls a second, and seconds' worth of calls that may come at once."""


@dataclass(slots=True)
class Health:
    """One model that has failed, or limits its calls.

    Attributes:
        streak: failures since the last answer.
        calls: number of calls since the model is watched; failed: numbers of the latest failed
            calls; heard: whether a watched call was answered.
        after: number of a decision; outcomes of decisions up to that number no longer count.
        down_since: time since which the model is down, seconds since the epoch; None: it answers.
        wait: seconds from the last trial to the next; trial_at: time at which the next trial is
            due; trial_seq: seq of the last trial's decision.
        rate: calls a second that the model answers; 0: no limit is known.
        left: calls that the model may get at once, at time `at`.
        answered, refused: calls since `since`, while the rate is measured.
        pace: recent rate of answered calls, per second, at time `paced_at`.
        limited_at: time of the last refused call.
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
        """Tell whether the model is healthy, so that no state has to be kept."""
        fails = self.down_since is not None or self.streak or self.failed
        return self.heard and not fails and self.limited_at is None

    @property
    def all_failed(self) -> bool:
        """Tell whether `IN_A_ROW` calls with consecutive numbers failed. Answers that came in
        between belong to earlier calls.
        """
        failed = self.failed
        return any(
            last - first == IN_A_ROW - 1
            for first, last in zip(failed, failed[IN_A_ROW - 1 :], strict=False)
        )

    def rests(self, now: float, seq: int) -> bool:
        """Tell whether a model that is down must not be tried yet at the decision after `seq`."""
        if now < self.trial_at:
            return True
        last = self.trial_at - self.wait
        return seq - self.trial_seq < TRIAL_SHARE and now < last + SLOW_WAIT

    def tried(self, now: float, seq: int) -> None:
        """Note that a call goes to the model while it is down."""
        self.wait = min(self.wait * WAIT_GROWS, MOST_WAIT)
        self.trial_at, self.trial_seq = max(self.trial_at, now + self.wait), seq

    def allowed(self, now: float) -> float:
        """Return the number of calls that the model may get at once."""
        gone = max(now - self.at, 0.0)
        return min(self.left + gone * self.rate, max(1.0, self.rate * BURST))

    def limit(self, now: float, seq: int) -> None:
        """Note a refused call, and reduce the rate to the answered one once that is known."""
        if self.limited_at is None:
            self.since, self.answered, self.refused = now, 0, 0
        self.limited_at = now
        self.refused += 1
        if self.rate > 0.0:
            self.follow(now, 0.0)
            # The rate may have grown far beyond the traffic.
            self.rate = max(min(self.rate * RATE_CUT, self.pace), LEAST_RATE)
        elif self.refused >= KNOWN_REFUSALS:
            seconds = max(now - self.since, BURST)
            self.rate = max(self.answered / seconds, LEAST_RATE)
            self.pace, self.paced_at = self.rate, now
        else:
            return
        # Calls in flight were decided at the earlier rate.
        self.after, self.left, self.at = seq, 0.0, now

    def follow(self, now: float, calls: float) -> None:
        """Add answered calls to the recent rate."""
        gone = max(now - self.paced_at, 0.0)
        self.pace = self.pace * exp_of(-gone / OF_LATE) + calls / OF_LATE
        self.paced_at = max(now, self.paced_at)

    def grow(self, now: float) -> None:
        """Raise the rate by the time since the last call."""
        if self.rate > 0.0 and now > self.at:
            self.left = self.allowed(now)
            lifted = self.limited_at is not None and now - self.limited_at > LIFTED
            self.rate *= exp_of(min((now - self.at) / (RUSH if lifted else RATE_GROWTH), 1.0))
            self.at = now

    def reason(self, now: float, seq: int) -> str | None:
        """Return why the model is not to be called at the decision after `seq`, or None."""
        if self.down_since is not None:
            return "down" if self.rests(now, seq) else None
        # The model asked for no calls for a while.
        if now < self.trial_at:
            return "down" if self.limited_at is None else "rate_limited"
        if self.rate > 0.0 and self.allowed(now) < 1.0:
            return "rate_limited"
        return None
