"""Publish λ_t and alerts, and write the values of decisions."""
