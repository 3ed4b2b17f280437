"""Parts that commands and the demo share: the bus to the topics, declarations, errors as sentences,
tables.
"""
