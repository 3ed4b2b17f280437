"""Work by the clock: end waits, sweep, bound the memory."""
