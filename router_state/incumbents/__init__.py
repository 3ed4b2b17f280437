"""Incumbents: what was used before answers a share of the requests, for comparison."""
