"""Attempts: what verdicts mean, and plans of several calls with a verdict between each two."""
