"""Good on anyone's traffic: worlds that the policies were not made on; `uv run python -m
benchmarks.elsewhere [--quick]`.
"""
