"""The speed of one model: the regression of the logarithm of its calls' seconds on contexts."""

from __future__ import annotations

from router_state.change import bill_change
from router_state.changes import Alert, Journal
from router_state.config import Price, Vector
from router_state.kernel import GUESSED, MEMORY, TAILS, CostModel, SharedPrior, log_of
from router_state.packing import layout
from router_state.packing.framing import floats, packed

PIECE = "\x1flatency:"
"""Prefix of the names of the pieces of state, one per model."""
ONE_SECOND = Price(1000.0, 1000.0)
"""List price at which a second counts as a dollar does to `CostModel`."""
LEAST_SECONDS = 1e-3
"""Least seconds of a call: a time of 0 has no logarithm."""
LEAST_LOG_VARIANCE = 1e-6
"""Least variance of a logarithm: where all calls take as long as expected, chances stay finite."""
TRIAL_EVERY, FIRST_TRIAL = 150, 10
"""Decisions between two trials of a model whose times are not reported, so that trials make less
than one call in a hundred slow; and decisions before the first trial of a model without any
time.
"""
NUMBERS = layout.Numbers("variance", "count", "heard", "trials", whole=("heard", "trials"))
"""Numbers of a speed beside those of its costs."""
OWN = len(NUMBERS)


class Speed:
    """The times of one model's calls.

    Attributes:
        costs: a cost model of times, with seconds in place of dollars.
        variance: variance of the logarithm of a call's seconds around its expectation; count:
            number of calls behind it, including the first guess.
        heard: seq of the router's last decision when a call last reported its time or the model got
            a trial; trials: number of trials before the first reported time.
    """

    __slots__ = ("costs", "count", "heard", "trials", "variance")

    def __init__(self, model: str, prior: SharedPrior, journal: Journal) -> None:
        self.costs = CostModel(model, prior, ONE_SECOND, journal)
        self.costs.regression.piece = f"{PIECE}{model}"
        self.costs.begin()
        self.variance, self.count, self.heard, self.trials = prior.noise, GUESSED, 0, 0

    @property
    def spread(self) -> float:
        """Return the variance of a call's logarithm, with the doubt of its expectation."""
        return self.variance + self.costs.level

    @property
    def rest(self) -> int:
        """Return the number of decisions from the last trial or bill (`heard`) to the next
        trial.
        """
        if self.count > GUESSED:
            return TRIAL_EVERY
        return min(FIRST_TRIAL << min(self.trials, 5), TRIAL_EVERY)

    def try_at(self, seq: int) -> None:
        """Note a trial at a decision."""
        self.heard, self.trials = seq, self.trials + 1

    def learn(self, seconds: float, x: Vector | None, *, seq: int, now: float) -> Alert | None:
        """Learn a call's time; return an alert if the model has suddenly become faster or
        slower."""
        seconds = max(seconds, LEAST_SECONDS)
        self.heard = seq
        if x is not None:
            self._scatter(seconds, x)
        found = self.costs.observe(seconds, x, known=0.0, now=now)
        if found is None:
            return None
        return bill_change.alert(self.costs, found, now=now, signal="latency")

    def _scatter(self, seconds: float, x: Vector) -> None:
        """Update the variance with the residual of a time."""
        regression = self.costs.regression
        exponent, doubt = regression.look(x)
        residual = log_of(seconds) - exponent
        self.count = min(self.count + 1.0, MEMORY)
        square = residual * residual / (1.0 + doubt / regression.decay)
        self.variance += (square - self.variance) / self.count
        self.variance = max(self.variance, LEAST_LOG_VARIANCE)

    def pack(self) -> bytes:
        """Return the speed as bytes."""
        numbers = [*layout.COSTS.of(self), *NUMBERS.of(self)]
        return packed(numbers, self.costs.regression.kept)

    def restore(self, data: bytes) -> None:
        """Invert `pack`. Raises DamagedState."""
        size, regression = len(layout.COSTS) + OWN, self.costs.regression
        least = size + regression.at + regression.d
        what = regression.piece.strip()
        values = floats(data, what, least=least, most=least + TAILS * regression.d)
        layout.COSTS.put(self, values[: size - OWN].tolist())
        NUMBERS.put(self, values[size - OWN : size].tolist())
        regression.restore(values[size:])
