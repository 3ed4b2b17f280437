"""Take events in: decode them, and choose what the next group has."""
