"""The ground floor: what every room shares (messages, the error boundary, traces, files).

Every package may import it. It imports no other.
"""
