"""Tell how to install an extra of this distribution, for errors that miss one."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from types import ModuleType


class MissingExtra(Exception):
    """A library is not installed; the message says which extra brings it."""

    reason = "missing_extra"
    retriable = False


OWN = Path(".cache/uv/bin/uv")
"""Path of the uv that `tools/setup` puts into a checkout if it finds none."""


def command(extra: str) -> str:
    """Return the command that installs an extra, to be run in a checkout."""
    root = Path(__file__).resolve().parents[1]
    own = shutil.which("uv") is None and (root / OWN).exists()
    return f"{OWN if own else 'uv'} pip install ./client '.[{extra}]'"


def sklearn(module: str) -> ModuleType:
    """Import a module of scikit-learn, such as `decomposition`. Only code that fits calls this, as
    the import takes a second.

    Raises:
        MissingExtra: the extra `fit` is not installed.
    """
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as absent:
        raise MissingExtra(
            f"fitting needs scikit-learn ({absent.name} is missing): {command('fit')}"
        ) from absent
