"""Publish decisions, λ_t and alerts."""
