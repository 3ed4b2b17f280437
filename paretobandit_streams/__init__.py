"""The one name of the service in site-packages; its folders (`agents`, `streams`, …) lie inside it.

Other distributions install packages of these names as well: `openai-agents` has an `agents`. They
do not meet, because only a process of `pbstream` gets the folders onto its path, in front of
everything else; `import paretobandit_streams` changes nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

FOLDERS = (
    "ground",
    "schemas",
    "router_state",
    "agents",
    "streams",
    "drawing",
    "doors",
    "studies",
    "watching",
    "commands",
)


class ForeignPackage(ImportError):
    """A package of another distribution was imported under the name of one of the service's
    folders.
    """


def home() -> Path:
    """Return the folder that holds the service's folders: this one once installed, its parent in a
    checkout.
    """
    here = Path(__file__).resolve().parent
    return here if (here / "streams").is_dir() else here.parent


def enter() -> None:
    """Make this process and its children one of the service: its folders come first on the path.

    Raises:
        ForeignPackage: this process has imported another `agents` (or `schemas`, …) before.
    """
    folder = str(home())
    for name in FOLDERS:
        loaded = sys.modules.get(name)
        if loaded is not None and not str(getattr(loaded, "__file__", "")).startswith(folder):
            raise ForeignPackage(
                f"another {name!r} is imported here already ({loaded.__file__}): run `pbstream` "
                "by itself"
            )
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    importlib.invalidate_caches()
