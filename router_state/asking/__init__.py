"""Asking: which requests people are asked to label, within a budget of labels."""
