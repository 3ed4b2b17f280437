"""The dashboard: a live page in the browser. It only reads the topics, unless an operator signs in
with a key.
"""
