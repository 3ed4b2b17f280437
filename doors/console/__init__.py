"""Hold what commands and the demo share: the bus to the topics, declarations, failures in words,
tables on a screen.
"""
