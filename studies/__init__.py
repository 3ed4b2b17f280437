"""Studies of recorded events: `history`, `simulate`, `warm_start` and `audit`.

`watching` and `commands` may import it. It imports `drawing`, `streams` and what lies below, but
not `doors`.
"""
