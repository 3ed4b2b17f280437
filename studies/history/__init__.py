"""Recorded topics: read, merged, decided again, verified."""
