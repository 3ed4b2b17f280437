"""The pages of this repository, for the tests that read them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
WHERE = ("*.md", "docs/**/*.md", "deploy/*.md", "client/*.md")
PAGES = sorted(page.relative_to(ROOT).as_posix() for where in WHERE for page in ROOT.glob(where))
"""Every page, by its path from the top of the checkout."""
