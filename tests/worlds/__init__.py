"""Drawn routers in drawn worlds: whatever a client may send, the engine keeps its contract (`make
worlds`).
"""
