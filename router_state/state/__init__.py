"""The life of a router's state: declarations, pieces, restoring and checks."""
