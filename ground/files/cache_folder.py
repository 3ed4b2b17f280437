"""Find the folder where computed files are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """Return a folder under `$XDG_CACHE_HOME/paretobandit-streams` (`~/.cache` by default); it need
    not exist.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache").joinpath("paretobandit-streams", *parts)
