"""Timed work: end waits, sweep routers, bound the memory."""
