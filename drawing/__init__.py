"""Charts, pages, numbers and sentences for people, in one style; the dashboard serves the same
files.

`doors`, `studies`, `watching` and `commands` may import it; no worker does. It imports `schemas`,
`router_state` and `ground`.
"""
