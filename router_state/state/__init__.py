"""Hold what a router owns and owes: its state, the books, and the state as bytes and back."""
