"""The partitions of a worker, and the parts that each owns."""
