"""Limits for showing or doubting an estimate."""

Z95 = 1.959964
"""Half the width of a two-sided 95 % interval, in standard deviations."""
SUPPORTED, ENOUGH = 0.99, 50
"""Least share of cases in which history could have chosen as the policy does, and least effective
sample size. Below either, weighted estimates are not shown."""
OUT_OF_BALANCE = 1.5  # half-widths of the weights' mean: once in 300 by chance
ROUNDING = 1e-9
"""Half-width below which an interval counts as none, as where all weights are 1."""
NO_LINES = (
    "history chose by products of features, which lines don't follow, so the direct estimate has "
    "no interval"
)
"""Why an estimate from lines is not supported."""
