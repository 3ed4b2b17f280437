"""The state of a partition in the durable table: routers, requests, parked events, pools,
offsets."""
