"""Cut batches to a size: what one commit changes must fit into one record batch of the
changelog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], weight: Callable[[T], int], *, limit: int) -> Iterator[list[T]]:
    """Yield the items in order, in lists that weigh at most `limit`; one that weighs more stands
    alone.

    Example:
        >>> list(portions([3, 3, 3, 9, 1], int, limit=6))
        [[3, 3], [3], [9], [1]]
    """
    portion: list[T] = []
    left = limit
    for item in items:
        size = weight(item)
        if portion and size > left:
            yield portion
            portion, left = [], limit
        portion.append(item)
        left -= size
    if portion:
        yield portion
