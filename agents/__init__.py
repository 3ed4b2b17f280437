"""Partitions, and the agents that handle the events of each source topic: a room for each.

The rooms, from the lowest up: `table`, `taking`, `partition`, `publishing`, `requests` and
`members`, `declaring`, `upkeep`. The files beside the rooms are shared by all of them.

`streams` and everything above may import it. It imports `router_state`, `schemas` and `ground`.
"""
