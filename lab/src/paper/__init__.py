"""The paper's experiments, run again: `python -m paper NAME|all`.

Nothing imports it, and no wheel holds it. It may import every room and `benchmarks`.
"""
