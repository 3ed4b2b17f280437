"""Take events in: decode them, and choose the events of the next group."""
