"""The durable table of a partition: its keys, its records, and the routers that they are of."""
