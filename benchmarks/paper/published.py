"""The paper's numbers, by experiment and row."""

from __future__ import annotations

from benchmarks.paper.printed import Published
from benchmarks.paper.published_appendix import APPENDIX
from benchmarks.paper.published_main import MAIN

PUBLISHED: dict[str, Published] = {**MAIN, **APPENDIX}
