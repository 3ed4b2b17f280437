"""The rank of a session's reward beside those of its requests."""

BELOW_OWN = 1_000_000
"""Rank that a session's reward loses. It exceeds the rank of every source, so that a request's own
reward comes first."""
