"""Define the first guesses of rewards and of bills, before any observation."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Guess:
    """A guess before the first observation, `GUESSED` coefficients strong.

    Attributes:
        mean, deviation: of the shared bias.
        noise: variance of an observation around its expectation.
        features: σ² ÷ variance that all features of an arm together explain.
        bias: σ² ÷ variance of the arms' biases around the shared one.
        absolute: whether the two refer to absolute variances, not to ratios with the estimated
            noise.
    """

    mean: float
    deviation: float
    noise: float
    features: float
    bias: float
    absolute: bool = False


REWARDS = Guess(mean=0.6, deviation=0.5, noise=0.09, features=12.0, bias=3.0)
"""Rewards between 0 and 1: a third of them is noise, models differ by half of that."""
COSTS = Guess(mean=-0.65, deviation=1.5, noise=0.3, features=4.0, bias=0.3, absolute=True)
"""Logarithms of bills: a factor of 4 is not known beforehand, prompts differ by as much, and models
by a factor of e: some think before they answer. What two terse models cost says little of a
third."""
LATENCIES = replace(COSTS, mean=0.7)
"""Logarithms of calls' seconds: two seconds, and as little known as bills are."""
