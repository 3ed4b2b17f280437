"""Families for people: what they know, brought from one cluster to another."""
