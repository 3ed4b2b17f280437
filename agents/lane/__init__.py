"""The eight steps of a partition's groups, and the isolation of an event on which the worker
fails.
"""
