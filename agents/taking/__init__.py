"""Take events in: decode them, and choose those of the next group."""
