"""Define the first guesses of rewards and of bills, before any observation."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Guess:
    """A guess before the first observation; the guess counts for `GUESSED` coefficients.

    Attributes:
        mean, deviation: mean and deviation of the shared bias.
        noise: variance of an observation around its expectation.
        features: σ² ÷ variance that all features of an arm together explain.
        bias: σ² ÷ variance of the arms' biases around the shared bias.
        absolute: whether `features` and `bias` stand for absolute variances instead of ratios to
            the estimated noise.
    """

    mean: float
    deviation: float
    noise: float
    features: float
    bias: float
    absolute: bool = False


REWARDS = Guess(mean=0.6, deviation=0.5, noise=0.09, features=12.0, bias=3.0)
"""Guess for rewards between 0 and 1: the noise has a deviation of 0.3, models differ by 0.17."""
COSTS = Guess(mean=-0.65, deviation=1.5, noise=0.3, features=4.0, bias=0.3, absolute=True)
"""Guess for logarithms of bills. The shared level is known to a factor of 4, and models differ by
a factor of e: some think before they answer, so bills of two terse models say little of a
third.
"""
LATENCIES = replace(COSTS, mean=0.7)
"""Guess for logarithms of calls' seconds: two seconds, as uncertain as bills."""
