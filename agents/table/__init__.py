"""The state of a partition in the durable table: routers, requests, parked events, pools,
families, offsets.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol


class Table(Protocol):
    """The records of one partition, see `streams.state.table_partition.Partition`."""

    number: int
    owned: bool
    open: bool
    epoch: int
    records: dict[bytes, bytes]

    def writing(self) -> AbstractContextManager[None]: ...

    def take(self) -> Mapping[bytes, bytes | None]: ...

    def roll_back(self) -> None: ...

    async def write(self, changes: Mapping[bytes, bytes | None]) -> None: ...

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def set_all(self, values: Mapping[bytes, bytes | None]) -> None: ...
