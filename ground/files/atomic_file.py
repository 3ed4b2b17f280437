"""Write a file so that it appears complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Hand out a temporary path beside `target`; rename it onto `target` on success, remove it on
    failure.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        # `mkstemp` lets only its owner read; workers run as other users.
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
