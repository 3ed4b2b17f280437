"""Budgets of a run: an agent's session may spend so many dollars."""
