"""The HTTP gateway: decisions, bills and rewards as requests and responses, each an event on the
same topics.
"""
