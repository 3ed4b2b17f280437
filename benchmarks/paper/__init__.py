"""The paper's experiments, run again: `python -m benchmarks.paper NAME|all`."""
