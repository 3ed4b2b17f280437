"""Spend a budget over requests: the pacers, and the scores and costs that they solve over."""
