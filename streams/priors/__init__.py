"""Folders of fitted priors, and the references by which a declaration names them."""
