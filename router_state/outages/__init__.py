"""Outages: which models answer, fail, or limit the rate of their calls."""
