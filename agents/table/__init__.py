"""What the durable table of a partition holds, and its routers over it."""
