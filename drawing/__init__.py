"""Charts, pages, numbers and sentences, all by one hand; the dashboard serves the same files.

`doors`, `studies`, `watching` and `commands` may import it; no worker does. It imports `schemas`,
`router_state` and `ground`.
"""
