"""Caps: absolute limits in dollars per hour or per day."""
