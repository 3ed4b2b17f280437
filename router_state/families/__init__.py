"""Families: routers that learn from each other, and what each takes from the others."""
