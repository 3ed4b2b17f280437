"""Names and Markdown of pictures in two files, for light and for dark pages."""

from __future__ import annotations

from html import escape
from pathlib import Path


def dark(target: Path) -> Path:
    """Return where a picture's twin for dark pages is."""
    return target.with_stem(f"{target.stem}-dark")


def shown(file: str, told: str) -> str:
    """Return a picture as Markdown has it, in the colours of the reader's page."""
    twin = dark(Path(file))
    return (
        f'<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="{twin}">\n'
        f'  <img src="{file}" alt="{escape(told)}">\n</picture>'
    )
