"""Needs: what models offer beside quality and price, and what requests need of it."""
