"""Add pages from outside `docs/` to the site, and mend links that leave it (a hook of mkdocs)."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
TAKEN_IN = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "client/README.md": "client.md",
    "README.md": "index.md",
}
"""Files of the checkout, and the pages that stand for them."""
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
"""A link in Markdown: its text, its target, its anchor."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand for files outside `docs/`."""
    for source, page in TAKEN_IN.items():
        if page != "index.md":
            files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at the site's own pages; of a link to any other file only its text remains."""
    sources = {new: old for old, new in TAKEN_IN.items() if new != "index.md"}
    path = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    here = PurePosixPath(page.file.src_uri).parent

    def mended(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if re.match(r"[a-z]+:", target):
            return found[0]
        meant = os.path.normpath(PurePosixPath(path).parent / target)
        if (ROOT / meant / "README.md").exists():
            meant += "/README.md"
        if meant in TAKEN_IN:
            inside = TAKEN_IN[meant]
        elif meant.startswith("docs/") and (ROOT / meant).is_file():
            inside = meant.removeprefix("docs/")
        elif not (ROOT / meant).exists():
            return found[0]  # mkdocs warns of it
        else:
            return f"{text} (`{meant}` in the checkout)" if meant not in text else text
        return f"[{text}]({os.path.relpath(inside, here)}{anchor})"

    return LINK.sub(mended, markdown)
