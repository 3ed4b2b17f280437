"""The paper's numbers, by experiment and row."""

from __future__ import annotations

from paper.printed import Published
from paper.published_appendix import APPENDIX
from paper.published_main import MAIN

PUBLISHED: dict[str, Published] = {**MAIN, **APPENDIX}
