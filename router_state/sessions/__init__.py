"""Sessions: requests that belong together. They share rewards, and a model may have the beginning
of their prompts in its cache.
"""
