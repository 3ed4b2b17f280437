"""Name the errors of a record that can't be read. Any other error while reading is a fault of this
program, and ends the worker."""

from __future__ import annotations

from typing import Final

from router_state.errors import CorruptSnapshot


class DamagedRecord(Exception):
    """A record of the durable table is damaged, or was written by another version of this
    program."""


DAMAGE: Final = (DamagedRecord, CorruptSnapshot)
"""Errors of reading a record of the agents, and a piece of the core."""
