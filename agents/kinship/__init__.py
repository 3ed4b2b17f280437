"""Conversations of families with their members."""
