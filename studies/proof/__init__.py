"""Prove what a router saves: the differences between it and its incumbent, with their intervals."""
