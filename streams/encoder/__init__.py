"""From a prompt to a context."""
