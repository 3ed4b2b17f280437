"""The demo: a benchmark played against a real worker on a real broker."""
