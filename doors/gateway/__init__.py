"""The door for HTTP: decisions, bills and rewards as requests and responses; each is an event on
the same topics.
"""
