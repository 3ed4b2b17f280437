"""Blocks of pairs, over which a change is looked for."""

FALSE = 0.01
"""Probability that a router ever raises a false alert of one kind."""
BLOCK = 16
"""Pairs of a block."""
BLOCKS = 8
"""Blocks that are kept: a change shows within 128 pairs or not at all."""
