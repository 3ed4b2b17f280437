"""Prove from the topics alone that a service kept its promises, or list where it did not."""
