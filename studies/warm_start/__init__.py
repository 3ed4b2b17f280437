"""Priors and projections, fitted offline."""
