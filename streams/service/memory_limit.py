"""Find the memory that a worker may use: half of its container's, or of its machine's."""

from __future__ import annotations

import os
from pathlib import Path

CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files in which Linux keeps a container's limit: cgroup v2, then v1."""
PART = 0.5
"""Share of the memory for the table; the rest is for models, batches under way and the encoder.
"""


def usual_memory(files: tuple[Path, ...] = CONTAINER) -> int:
    """Return the bytes that remembered requests may take where nothing else is set."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [machine]
    for file in files:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return int(PART * min(limits))
