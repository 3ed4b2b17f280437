"""Bills and rewards: book them, or let them wait for their request."""
