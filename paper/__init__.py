"""The paper's experiments, run again: `python -m paper NAME|all`."""
