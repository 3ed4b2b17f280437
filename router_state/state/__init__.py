"""The state of a router, its books, and their serialization."""
