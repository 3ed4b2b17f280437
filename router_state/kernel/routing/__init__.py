"""The events of a router: decisions, bills and rewards, and the books that they move."""
