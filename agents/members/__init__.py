"""Pools and their members: declare, report, grant."""
