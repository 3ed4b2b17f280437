"""Measure the core, the stream and a worker: `uv run python -m benchmarks.NAME [--quick]`.

Tests and `tools/` use some modules of it. What a router is worth is measured in `lab/`, under the
same name: `python -m benchmarks.NAME` finds both. No module here imports one of the laboratory, and
no wheel holds either.
"""

from pathlib import Path

__path__.append(str(Path(__file__).parents[1] / "lab" / "src" / "benchmarks"))
