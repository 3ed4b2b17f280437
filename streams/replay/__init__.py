"""History as a simulator: read what happened, decide again, ask what would have happened if."""
