"""Variants: a model that is called with parameters, such as an effort or a tier."""
