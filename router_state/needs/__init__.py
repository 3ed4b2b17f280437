"""Needs: features that models offer beside quality and price, and that requests may require."""
