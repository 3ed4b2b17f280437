"""Read the file of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from doors.console.failures import Failure

if TYPE_CHECKING:
    from router_state.state.portable import Exported

LARGEST = 8_000_000
"""Most characters of a snapshot in a declaration; the topic of declarations takes 8 MiB."""


def read_file(file: Path) -> tuple[bytes, Exported]:
    """Return a file's bytes and the snapshot in them. Raises Failure if it is damaged, foreign or
    newer.
    """
    from router_state.errors import CorruptSnapshot
    from router_state.state.portable import unpack

    data = file.read_bytes()
    try:
        return data, unpack(data)
    except CorruptSnapshot as error:
        raise Failure(f"{file}: {error}.") from error
