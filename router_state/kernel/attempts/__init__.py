"""Attempts: what a verifier's verdicts mean, and plans of two calls with one between them."""
