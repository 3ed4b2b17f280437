"""Commands that a person starts: the command line (`cli`), the `demo`, a local `broker`, and a
`crew` of workers.

Nothing of the service imports it. It may import everything.
"""
