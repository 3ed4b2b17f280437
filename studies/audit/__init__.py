"""Prove from the topics alone that a service kept its promises, or list the violations."""
