"""Work that is due by the clock: end waits, sweep, bound the memory."""
