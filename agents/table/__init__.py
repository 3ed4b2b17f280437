<<<<<<< HEAD
"""The state of a partition in the durable table: routers, requests, parked events, pools,
offsets."""
=======
"""The durable table of a partition: its keys, its records, and the routers that they are of."""
>>>>>>> main
