"""Declarations of routers: put them in force, and keep them readable."""
