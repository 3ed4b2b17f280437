"""Requests: decide each one, or let it wait for its router."""
