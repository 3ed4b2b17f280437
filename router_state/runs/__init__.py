"""Budgets of a run: limits of the dollars that an agent's session may spend."""
