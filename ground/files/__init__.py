"""Named arrays, atomic writes and the cache folder on disk."""
