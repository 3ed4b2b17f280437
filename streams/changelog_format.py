"""Define the marks of a changelog: fences, and the owner's epoch in the header of each record."""

from collections.abc import Iterable, Mapping

Changes = Mapping[bytes, bytes | None]
"""Records of one partition by key; None removes one."""
FENCE = b"\x00"
"""Key that a new owner writes before it acts; no other key may start with this byte."""
EPOCH = "epoch"
"""Header of each record: the epoch of the owner that wrote it, in decimal digits."""


def epoch_of(headers: Iterable[tuple[str, bytes]] | None) -> int:
    """Return the epoch of a record's owner, 0 without a header.

    >>> epoch_of(((EPOCH, b"7"),))
    7
    """
    return int(dict(headers or ()).get(EPOCH, b"0"))
