"""The eight steps of a partition's groups, and what becomes of an event on which the worker
fails."""
