"""The partitions of a worker, and what each owns."""
