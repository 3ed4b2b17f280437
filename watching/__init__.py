"""Live views: the `dashboard` in a browser, the board and the screen in a terminal.

`commands` may import it. It imports `doors`, `studies` and what lies below.
"""
