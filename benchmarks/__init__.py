"""Measure the product, and the product against its references: `uv run python -m benchmarks.NAME
[--quick]`.
"""
