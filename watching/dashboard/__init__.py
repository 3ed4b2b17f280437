"""The dashboard: one page in the browser, live from the topics; it only reads, unless an operator
has a key.
"""
