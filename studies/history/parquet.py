"""Read and write a history as Parquet: a file `TOPIC-PARTITION.parquet` per topic and partition,
keys and values as raw bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ground import extras
from studies.history.records import NO_HEADERS, Record

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000
"""Rows of a row group."""
MAX_BYTES = 32 * 2**20
"""Most bytes of a row group's values in memory."""


class MissingPyArrow(Exception):
    """Parquet needs pyarrow."""

    reason = "missing_pyarrow"
    retriable = False

    def __init__(self) -> None:
        super().__init__(
            f"Parquet needs pyarrow, which is not installed: {extras.command('replay')}"
        )


class ParquetHistory:
    """A folder of Parquet files as `write_parquet` makes them: offset, timestamp, key, value,
    headers.

    Raises:
        FileNotFoundError: there are no requests in this folder.
        MissingPyArrow: pyarrow is not installed.
    """

    def __init__(self, folder: Path) -> None:
        _pyarrow()
        self._folder = folder
        if not any(folder.glob("requests-*.parquet")):
            raise FileNotFoundError(2, "no requests-PARTITION.parquet in this folder", str(folder))

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic that have a file."""
        files = self._folder.glob(f"{topic}-*.parquet")
        return sorted(int(path.stem.rpartition("-")[2]) for path in files)

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records; none where there is no file."""
        from pyarrow import parquet

        path = self._folder / f"{topic}-{partition}.parquet"
        if not path.exists():
            return
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                offset, at, key, value, headers = batch.columns
                # Maps are slow to convert, and most topics have no header at all.
                pairs = repeat(None) if headers.null_count == len(batch) else headers.to_pylist()
                columns = (
                    offset.to_pylist(),
                    at.cast("int64").to_pylist(),
                    key.to_pylist(),
                    value.to_pylist(),
                    pairs,
                )
                for number, microseconds, name, body, found in zip(*columns, strict=False):
                    yield Record(
                        number, microseconds / 1e6, name, body, dict(found) if found else NO_HEADERS
                    )


def write_parquet(records: Iterable[Record], path: Path) -> int:
    """Write records as a Parquet file, a row group at a time; return how many.

    Raises:
        MissingPyArrow: pyarrow is not installed.
    """
    pa = _pyarrow()
    from pyarrow import parquet

    schema = _schema(pa)
    written, rows, size = 0, [], 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for record in records:
            value = record.value
            headers = list(record.headers.items()) or None
            rows.append((record.offset, round(record.timestamp * 1e6), record.key, value, headers))
            size += 0 if value is None else len(value)
            # Bytes are bounded, too: a declaration with a snapshot is as large as ten thousand
            # bills.
            if len(rows) >= ROWS or size >= MAX_BYTES:
                file.write_batch(_batch(pa, schema, rows))
                written, rows, size = written + len(rows), [], 0
        if rows:
            file.write_batch(_batch(pa, schema, rows))
    return written + len(rows)


def _batch(pa: Any, schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)


def _schema(pa: Any) -> pa.Schema:
    """Return the columns; the timestamp counts microseconds since the epoch, UTC."""
    return pa.schema(
        [
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.map_(pa.string(), pa.string())),
        ]
    )


def _pyarrow() -> object:
    try:
        import pyarrow
    except ImportError:
        raise MissingPyArrow from None
    return pyarrow
