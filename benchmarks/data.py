"""The benchmark of the paper out of the installed `paretobandit` wheel, and where more data lies
beside the clone.
"""

from __future__ import annotations

import os
from pathlib import Path

from commands.demo.benchmark import (
    Benchmark,
    MissingData,
    embed_cached,
    fitted_projection,
    load_benchmark,
    load_rows,
    read_judged,
    read_models,
    wheel_folder,
    wheel_priors,
    wheel_projection,
)

__all__ = [
    "EXTENDED_VARIABLE",
    "Benchmark",
    "MissingData",
    "embed_cached",
    "extended_folder",
    "fitted_projection",
    "load_benchmark",
    "load_rows",
    "read_judged",
    "read_models",
    "wheel_folder",
    "wheel_priors",
    "wheel_projection",
]
EXTENDED_VARIABLE = "PB_DATA"


def extended_folder() -> Path | None:
    """Return the folder with the four-model data that `PB_DATA` names, or None."""
    named = os.environ.get(EXTENDED_VARIABLE)
    return Path(named) if named else None
