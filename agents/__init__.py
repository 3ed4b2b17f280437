"""One agent for each source topic, and what the agents share.

`streams` and everything above may import it. It imports `router_state`, `schemas` and `ground`.
"""
