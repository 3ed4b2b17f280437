"""Partitions, and what is done with the events of each source topic: a room for each.

The rooms, from the lowest up: `table`, `taking`, `lane`, `partition`, `publishing` and `feedback`,
`routing` and `lending`, `declaring`, `upkeep`. Beside them stands what all of them share.

`streams` and everything above may import it. It imports `router_state`, `schemas` and `ground`.
"""
