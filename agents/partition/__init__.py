"""The partitions of a worker, with the lane of each: eight steps, and what the worker fails on."""
