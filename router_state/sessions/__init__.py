"""Sessions: requests that belong together share rewards, and prompts whose beginning a model has
just seen.
"""
