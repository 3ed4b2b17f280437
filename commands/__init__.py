"""The commands of a person: the command line (`cli`), the `demo`, and for one machine a `broker`
and a `crew` of workers.

Nothing of the service imports it. It may import everything.
"""
