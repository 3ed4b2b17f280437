"""Attempts: a cheap model answers first, a verifier looks at the answer, and then the router
decides whether another model is called.
"""
