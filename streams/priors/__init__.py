"""Folders of fitted priors, and references to them in declarations."""
