"""Budgets of a month on traffic that is not flat: what is spent at its end, and what it earned."""
