"""The rank of a session's reward, relative to rewards of its requests."""

BELOW_OWN = 1_000_000
"""Number subtracted from the rank of a session's reward. It exceeds the rank of every source, so
that a request's own reward always has the higher rank.
"""
