"""Measure the product, and the product against its references: `uv run python -m benchmarks.NAME
[--quick]`.

Only `paper` imports it, and no wheel holds it. It may import every room.
"""
