"""Attempts: a cheap model answers first, a verifier looks at the answer, and then is decided
again."""
